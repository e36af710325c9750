from django.apps import AppConfig


class GuardConfig(AppConfig):
    name = "apps.guard"
    label = "guard"

    def ready(self) -> None:
        from apps.guard import receivers  # noqa: F401  (carries out messages of the bus)
