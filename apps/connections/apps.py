from django.apps import AppConfig


class ConnectionsConfig(AppConfig):
    name = "apps.connections"
    label = "connections"

    def ready(self) -> None:
        from apps.connections import credentials, handlers, permissions, receivers  # noqa: F401  (connect to the rooms below)
        from apps.connections.scripts import run_connection
        from apps.guard.enums import Intent
        from apps.guard.registry import register, register_policy
        from apps.knowledge.ports import register_accounts
        from apps.skills.ports import register_credentials
        from apps.tenants import vault

        register(Intent.RUN_CONNECTION, run_connection)
        register_policy(Intent.RUN_SKILL, permissions.check_connection)
        register_credentials(permissions.open_for_tool, permissions.store_for_tool)
        register_accounts(permissions.list_source_accounts, permissions.open_for_source)
        vault.register_resealer("credentials", credentials.reseal)
