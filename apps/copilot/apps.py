from django.apps import AppConfig


class CopilotConfig(AppConfig):
    name = "apps.copilot"
    label = "copilot"

    def ready(self) -> None:
        from apps.copilot import receivers  # noqa: F401  (connects to the conversation's news)
