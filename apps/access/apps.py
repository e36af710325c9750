from django.apps import AppConfig


class AccessConfig(AppConfig):
    name = "apps.access"
    label = "access"

    def ready(self) -> None:
        from apps.access import levels
        from apps.access.models import AccessLevel
        from apps.tenants import policy_seals
        from apps.tenants.enums import PolicyKind

        policy_seals.certify_rows(AccessLevel, PolicyKind.LEVELS, levels.sealed_level)
