from django.apps import AppConfig


class AutonomyConfig(AppConfig):
    name = "apps.autonomy"
    label = "autonomy"
    verbose_name = "Work that runs unattended"

    def ready(self) -> None:
        from apps.autonomy import handlers, listening, receivers  # noqa: F401  (connects to the rooms below)
        from apps.autonomy.models import Webhook
        from apps.tenants import secret_rotation

        handlers.register()
        secret_rotation.register_column(Webhook, "sealed_secret", "webhook")
