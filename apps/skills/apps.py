from django.apps import AppConfig


class SkillsConfig(AppConfig):
    name = "apps.skills"
    label = "skills"

    def ready(self) -> None:
        from apps.guard.enums import Intent
        from apps.guard.registry import register
        from apps.skills import receivers  # noqa: F401  (connects to the rooms below)
        from apps.skills.queries import program_of
        from apps.skills.runs import run_skill
        from apps.toolservers.ports import register_programs

        register(Intent.RUN_SKILL, run_skill)
        register_programs(program_of)
