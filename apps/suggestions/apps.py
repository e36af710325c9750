from django.apps import AppConfig


class SuggestionsConfig(AppConfig):
    name = "apps.suggestions"
    label = "suggestions"

    def ready(self) -> None:
        from apps.suggestions import receivers  # noqa: F401  (connects to the rooms below)
