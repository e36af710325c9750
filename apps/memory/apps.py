from django.apps import AppConfig


class MemoryConfig(AppConfig):
    name = "apps.memory"
    label = "memory"

    def ready(self) -> None:
        from apps.memory import handlers, receivers  # noqa: F401  (registers what it carries out)

        handlers.register()
