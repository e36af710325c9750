from django.apps import AppConfig


class SkillsConfig(AppConfig):
    name = "apps.skills"
    label = "skills"

    def ready(self) -> None:
        from apps.guard.enums import Intent
        from apps.guard.registry import register
        from apps.skills.runs import run_skill

        register(Intent.RUN_SKILL, run_skill)
