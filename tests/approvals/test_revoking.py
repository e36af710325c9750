"""An approval that was taken back opens nothing from that moment, and a void key's approvals neither."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import DatabaseError

from apps.approvals import signals
from apps.approvals.enums import ApprovalScope, Reason
from apps.approvals.models import ApprovalToken, TokenRevocation, TokenUse
from apps.approvals.tokens import payloads
from apps.approvals.tokens.services import revoke_token
from apps.audit.models import AuditEntry
from kernel.errors import SilasError
from kernel.tenancy import tenant_scope
from tests.approvals.test_tokens import check, spawn, verify
from tests.factories.approvals import make_plan, make_token
from tests.rivals import race


@pytest.fixture
def plan() -> dict[str, Any]:
    return make_plan()


@pytest.fixture
def token(tenant: Any, owner: Any, plan: dict[str, Any]) -> ApprovalToken:
    return make_token(tenant, owner, plan)


def revoke(tenant: Any, token: ApprovalToken, user: Any, reason: str = "The customer called again.") -> TokenRevocation:
    with tenant_scope(tenant):
        return revoke_token(token, user=user, reason=reason)


def refusal(tenant: Any, token: ApprovalToken, user: Any, **terms: str) -> SilasError:
    with pytest.raises(SilasError) as caught:
        revoke(tenant, token, user, **terms)
    return caught.value


def test_verify_of_revoked_token_is_refused(tenant: Any, token: ApprovalToken, plan: Any, approver: Any) -> None:
    revoke(tenant, token, approver)
    assert verify(tenant, token, plan) is Reason.TOKEN_REVOKED


def test_check_of_revoked_token_fails_at_once(tenant: Any, token: ApprovalToken, plan: Any, approver: Any) -> None:
    verify(tenant, token, plan)
    revoke(tenant, token, approver)
    assert check(tenant, token, payloads.approvable_plan(plan)) is Reason.TOKEN_REVOKED


def test_verified_child_of_revoked_standing_token_is_refused(tenant: Any, owner: Any) -> None:
    goal = make_plan(type="goal", skills=["desk"], failure_context="Fix $failed_checks")
    standing = make_token(tenant, owner, goal, scope=ApprovalScope.STANDING, max_executions=2)
    child = spawn(tenant, goal)
    verify(tenant, standing, goal, child)
    revoke(tenant, standing, owner)
    assert check(tenant, standing, child) is Reason.TOKEN_REVOKED


@pytest.mark.parametrize("role", ["agent", "viewer", "stranger"])
def test_revoking_without_approving_role_is_refused(tenant: Any, token: Any, request: Any, role: str) -> None:
    assert refusal(tenant, token, request.getfixturevalue(role)).code == "approver_required"


def test_revoking_from_another_tenant_finds_nothing(other_tenant: Any, token: ApprovalToken) -> None:
    from tests.factories.tenants import make_member

    assert refusal(other_tenant, token, make_member(other_tenant, "owner")).status == 404


def test_revoking_without_a_reason_is_refused(tenant: Any, token: ApprovalToken, owner: Any) -> None:
    assert refusal(tenant, token, owner, reason="  ").code == "reason_missing"


def test_revoking_twice_is_refused(tenant: Any, token: ApprovalToken, owner: Any) -> None:
    revoke(tenant, token, owner)
    assert refusal(tenant, token, owner).code == "token_revoked"


def test_reason_stays_out_of_the_audit_log(tenant: Any, token: ApprovalToken, owner: Any) -> None:
    revoke(tenant, token, owner, reason="Mrs Smith called")
    with tenant_scope(tenant):
        entry = AuditEntry.objects.order_by("seq").last()
    assert entry.event == "approval_revoked"
    assert "Smith" not in entry.data


def test_revocation_is_told_in_the_same_transaction(tenant: Any, token: ApprovalToken, owner: Any) -> None:
    def fail(*_: Any) -> None:
        raise RuntimeError("receiver")

    signals.token_revoked.connect(fail)
    try:
        with pytest.raises(RuntimeError):
            revoke(tenant, token, owner)
    finally:
        signals.token_revoked.disconnect(fail)
    with tenant_scope(tenant):
        assert not TokenRevocation.objects.exists()


@pytest.mark.parametrize("change", [{"token_nonce": "another"}, {"reason": "nothing"}])
def test_revocation_cannot_be_rewritten(tenant: Any, token: ApprovalToken, owner: Any, change: dict[str, str]) -> None:
    revoke(tenant, token, owner)
    with pytest.raises(DatabaseError, match="cannot be rewritten"), tenant_scope(tenant):
        TokenRevocation.objects.update(**change)


def test_use_and_revocation_at_once_leave_no_use_after_the_revocation(tenant: Any, owner: Any, plan: Any) -> None:
    for _ in range(5):
        token, fresh = make_token(tenant, owner, plan := make_plan()), plan
        spent, _revoked = race(lambda: verify(tenant, token, fresh), lambda: revoke(tenant, token, owner))  # noqa: B023
        with tenant_scope(tenant):
            used = TokenUse.objects.filter(token_nonce=token.nonce).count()
        assert used == (spent is Reason.OK)
