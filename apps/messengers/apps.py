from django.apps import AppConfig


class MessengersConfig(AppConfig):
    name = "apps.messengers"
    label = "messengers"

    def ready(self) -> None:
        from apps.messengers import adapters, handlers, receivers, services  # noqa: F401  (register themselves)
        from apps.tenants import vault

        vault.register_resealer("channels", services.reseal)
