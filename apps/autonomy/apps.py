from django.apps import AppConfig


class AutonomyConfig(AppConfig):
    name = "apps.autonomy"
    label = "autonomy"
    verbose_name = "Work that runs unattended"

    def ready(self) -> None:
        from apps.autonomy import handlers, listening, receivers  # noqa: F401  (connects to the rooms below)

        handlers.register()
