from django.apps import AppConfig


class SafetyConfig(AppConfig):
    name = "apps.safety"
    label = "safety"

    def ready(self) -> None:
        from apps.safety import receivers  # noqa: F401  (carries out messages of the bus)
