from django.apps import AppConfig


class SessionsConfig(AppConfig):
    name = "apps.sessions"
    # Django's own sessions app has the plain label.
    label = "silas_sessions"
    verbose_name = "Conversations"

    def ready(self) -> None:
        from apps.sessions import receivers  # noqa: F401  (news from work reaches the conversation)
