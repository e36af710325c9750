from django.apps import AppConfig


class ConnectionsConfig(AppConfig):
    name = "apps.connections"
    label = "connections"

    def ready(self) -> None:
        from apps.connections import credentials
        from apps.tenants import vault

        vault.reseals("credentials", credentials.reseal)
