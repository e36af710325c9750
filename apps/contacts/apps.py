from django.apps import AppConfig


class ContactsConfig(AppConfig):
    name = "apps.contacts"
    label = "contacts"

    def ready(self) -> None:
        from apps.contacts import handlers, receivers  # noqa: F401  (bus handlers; connects to verified visitors)
