from django.apps import AppConfig


class ApprovalsConfig(AppConfig):
    name = "apps.approvals"
    label = "approvals"

    def ready(self) -> None:
        from apps.approvals import queries, receivers  # noqa: F401  (connects the receivers)
        from apps.approvals.models import ApprovalPolicy
        from apps.tenants import policy_seals
        from apps.tenants.enums import PolicyKind

        policy_seals.certify_rows(ApprovalPolicy, PolicyKind.APPROVALS, queries.policy_fields)
