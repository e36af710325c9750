from django.apps import AppConfig


class VisitorsConfig(AppConfig):
    name = "apps.visitors"
    label = "visitors"

    def ready(self) -> None:
        from apps.tenants import secret_rotation
        from apps.visitors import receivers  # noqa: F401  (connects to the conversation's news and to the bus)
        from apps.visitors.models import VisitorCard

        secret_rotation.register_column(VisitorCard, "sealed", "visitor_secret")
