from django.apps import AppConfig


class WorkConfig(AppConfig):
    name = "apps.work"
    label = "work"

    def ready(self) -> None:
        from apps.work import receivers  # noqa: F401  (connects to cards and the bus)
