from django.apps import AppConfig


class SessionsConfig(AppConfig):
    name = "apps.sessions"
    # Django's own sessions app has the plain label.
    label = "silas_sessions"
    verbose_name = "Conversations"

    def ready(self) -> None:
        from apps.sessions import policy, receivers  # noqa: F401  (news from work reaches the conversation)
        from apps.sessions.models import AccessLevel
        from apps.tenants import policy_seals
        from apps.tenants.enums import PolicyKind

        policy_seals.certify_rows(AccessLevel, PolicyKind.LEVELS, policy.sealed_level)
