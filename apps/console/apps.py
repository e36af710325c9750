from django.apps import AppConfig


class ConsoleConfig(AppConfig):
    name = "apps.console"
    label = "console"

    def ready(self) -> None:
        from apps.console import receivers  # noqa: F401  (news from the rooms below reaches open consoles)
