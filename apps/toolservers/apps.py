from django.apps import AppConfig


class ToolServersConfig(AppConfig):
    name = "apps.toolservers"
    label = "toolservers"

    def ready(self) -> None:
        from apps.guard.enums import Intent
        from apps.guard.registry import register
        from apps.toolservers.calls import call_tool

        register(Intent.CALL_MCP_TOOL, call_tool)
