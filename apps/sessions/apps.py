from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class SessionsConfig(AppConfig):
    name = "apps.sessions"
    # Django's own sessions app has the plain label.
    label = "silas_sessions"
    verbose_name = _("Conversations")

    def ready(self) -> None:
        from apps.knowledge.ports import register_citations
        from apps.sessions import gate_backtest_source, receivers  # noqa: F401  (register with the rooms below)
        from apps.sessions.queries import answers_citing

        register_citations(answers_citing)
