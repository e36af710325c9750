from django.apps import AppConfig


class WorkConfig(AppConfig):
    name = "apps.work"
    label = "work"

    def ready(self) -> None:
        from apps.guard.enums import Intent
        from apps.guard.registry import register
        from apps.skills.ports import Library, register_library
        from apps.tenants import policy_seals
        from apps.tenants.enums import PolicyKind
        from apps.tenants.models import Deployment
        from apps.work import document_tools, handlers, queries, receivers  # noqa: F401  (receivers connects signals)
        from apps.work.artifact_reader import read_file

        policy_seals.certify_rows(Deployment, PolicyKind.GOALS, queries.sealed_goal)
        register(Intent.READ_FILE, read_file)
        register_library(Library(document_tools.documents_for_script, document_tools.request_change))
        handlers.register()
