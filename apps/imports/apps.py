from django.apps import AppConfig


class ImportsConfig(AppConfig):
    name = "apps.imports"
    label = "imports"

    def ready(self) -> None:
        from apps.imports import handlers  # noqa: F401  (registers the bus handlers)
