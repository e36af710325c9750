from django.apps import AppConfig


class InboxConfig(AppConfig):
    name = "apps.inbox"
    label = "inbox"

    def ready(self) -> None:
        from apps.inbox import receivers  # noqa: F401  (connects to the conversation's news)
