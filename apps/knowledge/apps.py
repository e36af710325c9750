from django.apps import AppConfig


class KnowledgeConfig(AppConfig):
    name = "apps.knowledge"
    label = "knowledge"

    def ready(self) -> None:
        from apps.knowledge import handlers, tool_handlers  # noqa: F401  (registers the bus handlers)

        tool_handlers.register()
