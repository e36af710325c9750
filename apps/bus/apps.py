from django.apps import AppConfig


class BusConfig(AppConfig):
    name = "apps.bus"
    label = "bus"

    def ready(self) -> None:
        from apps.bus import receivers  # noqa: F401  (registers what it carries out)
