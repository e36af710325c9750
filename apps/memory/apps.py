from django.apps import AppConfig


class MemoryConfig(AppConfig):
    name = "apps.memory"
    label = "memory"

    def ready(self) -> None:
        from apps.memory import handlers, tool_handlers  # noqa: F401  (registers the bus handlers)

        tool_handlers.register()
