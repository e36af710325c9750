from django.apps import AppConfig


class ApprovalsConfig(AppConfig):
    name = "apps.approvals"
    label = "approvals"

    def ready(self) -> None:
        from apps.approvals import (
            queries,
            receivers,  # noqa: F401  (pauses hear of their cards)
        )
        from apps.approvals.models import ApprovalPolicy
        from apps.tenants import policy_seals
        from apps.tenants.enums import PolicyKind

        policy_seals.certify_rows(ApprovalPolicy, PolicyKind.APPROVALS, queries.sealed_policy)
