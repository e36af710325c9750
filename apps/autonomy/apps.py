from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class AutonomyConfig(AppConfig):
    name = "apps.autonomy"
    label = "autonomy"
    verbose_name = _("Automations")

    def ready(self) -> None:
        from apps.autonomy import receivers, tool_handlers  # noqa: F401  (receivers connect to the rooms below)
        from apps.autonomy.models import Webhook
        from apps.tenants import secret_rotation

        tool_handlers.register()
        secret_rotation.register_column(Webhook, "sealed_secret", "webhook")
