from django.apps import AppConfig


class ToolServersConfig(AppConfig):
    name = "apps.toolservers"
    label = "toolservers"

    def ready(self) -> None:
        from apps.guard.enums import Intent
        from apps.guard.registry import register, register_policy
        from apps.tenants import vault
        from apps.toolservers import handlers, services  # noqa: F401  (registers the bus's handlers)
        from apps.toolservers.calls import call_tool
        from apps.toolservers.web import calls as web
        from apps.toolservers.web import services as searching

        register(Intent.CALL_MCP_TOOL, call_tool)
        register(Intent.WEB_SEARCH, web.search_web)
        register_policy(Intent.WEB_SEARCH, web.check_set_up)
        vault.register_resealer("tool_servers", services.reseal)
        vault.register_resealer("web_search", searching.reseal)
