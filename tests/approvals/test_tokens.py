"""An approval token is spent as often as it says, for exactly what was approved, whatever is done to its row."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta
from typing import Any
from uuid import uuid4

import psycopg
import pytest
import time_machine
from django.db import DatabaseError, IntegrityError

from apps.approvals import locks, rules
from apps.approvals.cards.services import decide_card
from apps.approvals.enums import ApprovalScope, ApprovalVerdict, Reason
from apps.approvals.keys import signing
from apps.approvals.models import ApprovalToken, TokenUse
from apps.approvals.schemas import to_base64
from apps.approvals.tokens import payloads
from apps.approvals.tokens.schemas import Approvable, SignedToken, TokenClaims
from apps.approvals.tokens.services import check_token, issue_token, verify_token
from apps.audit.models import AuditEntry
from kernel.errors import SilasError
from kernel.tenancy import tenant_scope
from tests.approvals import vectors
from tests.factories.approvals import make_plan, make_token, open_card
from tests.factories.work import put_rows
from tests.rivals import race

TEMPLATE = 'Fix: $failed_checks\n\n```call\n{"tool": "refund", "args": {"amount": "$amount"}}\n```'


@pytest.fixture
def plan() -> dict[str, Any]:
    return make_plan(title="Zeitzone ü", skills=["a", "b"])


@pytest.fixture
def token(tenant: Any, owner: Any, plan: dict[str, Any]) -> ApprovalToken:
    return make_token(tenant, owner, plan)


@pytest.fixture
def goal() -> dict[str, Any]:
    return make_plan(type="goal", failure_context=TEMPLATE, skills=["desk"])


@pytest.fixture
def standing(tenant: Any, owner: Any, goal: dict[str, Any]) -> ApprovalToken:
    return make_token(tenant, owner, goal, scope=ApprovalScope.STANDING, max_executions=2, token_seconds=86_400)


def spawn(tenant: Any, goal: dict[str, Any], amount: float = 5.0) -> Approvable:
    """A child that is what its goal's template makes of its values, in its row."""
    body = TEMPLATE.replace('"$amount"', json.dumps(amount)).replace("$failed_checks", "one")
    child = make_plan(parent=goal["id"], skills=["desk"], body=body)
    put_rows(tenant, goal, child)
    found = payloads.approvable_plan(child, goal=payloads.approvable_plan(goal))
    return replace(found, rendered_hash=found.plan_hash)


def verify(tenant: Any, token: ApprovalToken, plan: dict[str, Any], spawned: Approvable | None = None) -> Reason:
    with tenant_scope(tenant):
        return verify_token(token, payloads.approvable_plan(plan), spawned).reason


def check(tenant: Any, token: ApprovalToken, subject: Approvable) -> Reason:
    with tenant_scope(tenant):
        return check_token(token, subject).reason


def reload(tenant: Any, token: ApprovalToken) -> ApprovalToken:
    with tenant_scope(tenant):
        fresh: ApprovalToken = ApprovalToken.objects.get(pk=token.pk)
        return fresh


def tamper(dsn: str, sql: str, values: list[Any]) -> None:
    """Write as somebody who owns the database and has switched the triggers off."""
    with psycopg.connect(dsn) as raw:
        raw.execute("SET session_replication_role = replica")
        raw.execute(sql, values)


def test_verify_of_approved_plan_is_ok(tenant: Any, token: ApprovalToken, plan: dict[str, Any]) -> None:
    assert verify(tenant, reload(tenant, token), plan) is Reason.OK


def test_verify_twice_is_refused(tenant: Any, token: ApprovalToken, plan: dict[str, Any]) -> None:
    verify(tenant, token, plan)
    assert verify(tenant, token, plan) is Reason.EXECUTION_LIMIT_REACHED


def test_verify_by_two_at_once_is_won_by_one(tenant: Any, token: ApprovalToken, plan: dict[str, Any]) -> None:
    answers = race(*[lambda: verify(tenant, token, plan)] * 2)
    assert sorted(map(str, answers)) == ["execution_limit_reached", "ok"]


def test_verify_by_twelve_at_once_is_won_by_one(tenant: Any, token: ApprovalToken, plan: dict[str, Any]) -> None:
    answers = race(*[lambda: verify(tenant, token, plan)] * 12)
    assert answers.count(Reason.OK) == 1


def test_verify_in_a_rolled_back_scope_spends_nothing(tenant: Any, token: ApprovalToken, plan: dict[str, Any]) -> None:
    def spend_and_fail() -> None:
        with tenant_scope(tenant):
            verify_token(token, payloads.approvable_plan(plan))
            raise RuntimeError

    with pytest.raises(RuntimeError):
        spend_and_fail()
    assert verify(tenant, token, plan) is Reason.OK


def test_verify_of_changed_plan_is_refused(tenant: Any, token: ApprovalToken, plan: dict[str, Any]) -> None:
    assert verify(tenant, token, {**plan, "body": "Transfer everything"}) is Reason.PLAN_HASH_MISMATCH


def test_verify_after_expiry_is_refused(tenant: Any, token: ApprovalToken, plan: dict[str, Any]) -> None:
    with time_machine.travel(token.expires_at, tick=False):
        assert verify(tenant, token, plan) is Reason.TOKEN_EXPIRED


def test_verify_just_before_expiry_is_ok(tenant: Any, token: ApprovalToken, plan: dict[str, Any]) -> None:
    with time_machine.travel(token.expires_at - timedelta(microseconds=1), tick=False):
        assert verify(tenant, token, plan) is Reason.OK


@pytest.mark.parametrize(
    "change",
    [
        "max_executions = 9",
        "expires_at = expires_at + interval '1 day'",
        "scope = 'standing'",
        "nonce = gen_random_uuid()::text",
        "conditions = '{\"a\": 1}'",
        "signature = 'AAAA'",
        "signature = '!'",
        "work_item_id = 'other'",
    ],
)
def test_verify_of_edited_row_is_refused(
    tenant: Any, token: ApprovalToken, plan: dict[str, Any], superuser_dsn: str, change: str
) -> None:
    tamper(superuser_dsn, f"UPDATE approvals_approvaltoken SET {change} WHERE id = %s", [token.pk])
    assert verify(tenant, reload(tenant, token), plan) is Reason.INVALID_SIGNATURE


ALTERED: dict[str, Any] = {
    "plan_hash": vectors.V1,
    "work_item_id": "another",
    "scope": ApprovalScope.BUDGET,
    "verdict": ApprovalVerdict.DECLINED,
    "issued_at": timedelta(microseconds=-1),
    "expires_at": timedelta(microseconds=1),
    "nonce": "another",
    "approval_strength": "biometric",
    "conditions": {"spawn_policy_hash": vectors.S0},
    "max_executions": 2,
}


@pytest.mark.parametrize("field", TokenClaims.model_fields)
def test_token_with_one_signed_field_altered_is_refused(
    tenant: Any, token: ApprovalToken, plan: dict[str, Any], field: str
) -> None:
    """Each of the ten, in the hands of a caller, by `verify` before a use and by `check` after it."""
    genuine = getattr(token, field)
    change = ALTERED[field]
    altered = genuine + change if isinstance(change, timedelta) else change
    setattr(token, field, altered)
    spent = verify(tenant, token, plan)
    setattr(token, field, genuine)
    verify(tenant, token, plan)
    setattr(token, field, altered)
    found = (spent, check(tenant, token, payloads.approvable_plan(plan)))
    assert altered != genuine
    assert found == (Reason.INVALID_SIGNATURE, Reason.INVALID_SIGNATURE)


def test_ten_fields_are_signed() -> None:
    assert len(TokenClaims.model_fields) == len(ALTERED) == 10


def test_verify_with_a_genuinely_signed_unknown_condition_is_refused(
    tenant: Any, owner: Any, token: ApprovalToken, plan: dict[str, Any]
) -> None:
    assert verify(tenant, sign_as(tenant, owner, token, conditions={"only": "today"}), plan) is Reason.CONDITION_UNKNOWN


def test_use_cannot_be_spent_past_the_limit_by_calling_the_database_itself(
    tenant: Any, token: ApprovalToken, plan: dict[str, Any]
) -> None:
    """What a taken-over worker could try: the function that spends looks at the token itself."""
    verify(tenant, token, plan)
    with tenant_scope(tenant):
        again = locks.spend_use(SignedToken.of_row(token), bound_hash=vectors.V1, subject_id="x")
    assert again is Reason.EXECUTION_LIMIT_REACHED


def test_token_of_another_tenant_cannot_be_spent_by_calling_the_database_itself(
    other_tenant: Any, token: ApprovalToken
) -> None:
    with tenant_scope(other_tenant):
        spent = locks.spend_use(SignedToken.of_row(token), bound_hash=vectors.V1, subject_id="x")
    assert spent is Reason.TOKEN_UNKNOWN


def test_verify_of_renamed_row_does_not_reset_its_use(
    tenant: Any, token: ApprovalToken, plan: dict[str, Any], superuser_dsn: str
) -> None:
    verify(tenant, token, plan)
    tamper(superuser_dsn, "UPDATE approvals_approvaltoken SET id = %s WHERE id = %s", [uuid4(), token.pk])
    with tenant_scope(tenant):
        renamed = ApprovalToken.objects.get(nonce=token.nonce)
    assert verify(tenant, renamed, plan) is Reason.EXECUTION_LIMIT_REACHED


def test_copy_of_a_token_cannot_be_stored(tenant: Any, token: ApprovalToken) -> None:
    token.pk = uuid4()
    with pytest.raises(IntegrityError), tenant_scope(tenant):
        token.save(force_insert=True)


def test_verify_of_unstored_token_is_refused(
    tenant: Any, owner: Any, token: ApprovalToken, plan: dict[str, Any]
) -> None:
    forged = sign_as(tenant, owner, token, nonce="never-stored")
    assert verify(tenant, forged, plan) is Reason.TOKEN_UNKNOWN


@pytest.mark.parametrize("verdict", [v for v in ApprovalVerdict if v is not ApprovalVerdict.APPROVED])
def test_verify_of_signed_other_verdict_is_refused(
    tenant: Any, owner: Any, token: ApprovalToken, plan: dict[str, Any], verdict: ApprovalVerdict
) -> None:
    assert verify(tenant, sign_as(tenant, owner, token, verdict=verdict), plan) is Reason.NOT_APPROVED


def sign_as(tenant: Any, user: Any, token: ApprovalToken, **changes: Any) -> ApprovalToken:
    """The token with other claims, truly signed by the user's key, as a careless caller with that key might do."""
    row = SignedToken.of_row(token)
    claims = TokenClaims(**{**{name: getattr(row, name) for name in TokenClaims.model_fields}, **changes})
    with tenant_scope(tenant):
        signature = signing.sign(signing.key_for(user), rules.signed_bytes(claims))
    return ApprovalToken(
        pk=token.pk,
        tenant_id=token.tenant_id,
        key_id=token.key_id,
        signature=to_base64(signature),
        **claims.model_dump(),
    )


def test_verify_in_other_tenant_is_refused(tenant: Any, other_tenant: Any, token: ApprovalToken, plan: Any) -> None:
    assert verify(other_tenant, token, plan) is Reason.INVALID_SIGNATURE


def test_verify_under_key_of_other_approver_is_refused(
    tenant: Any, approver: Any, token: ApprovalToken, plan: dict[str, Any]
) -> None:
    token.key_id = make_token(tenant, approver, make_plan()).key_id
    assert verify(tenant, token, plan) is Reason.INVALID_SIGNATURE


def test_verify_refusal_is_written_down(tenant: Any, token: ApprovalToken, plan: dict[str, Any]) -> None:
    verify(tenant, token, {**plan, "title": "other"})
    with tenant_scope(tenant):
        assert AuditEntry.objects.order_by("seq").last().data == '{"reason":"plan_hash_mismatch"}'


def test_check_before_verify_is_refused(tenant: Any, token: ApprovalToken, plan: dict[str, Any]) -> None:
    assert check(tenant, token, payloads.approvable_plan(plan)) is Reason.TOKEN_NOT_CONSUMED


def test_check_after_verify_is_ok_again_and_again(tenant: Any, token: ApprovalToken, plan: dict[str, Any]) -> None:
    verify(tenant, token, plan)
    subject = payloads.approvable_plan(plan)
    assert [check(tenant, token, subject) for _ in range(3)] == [Reason.OK] * 3


def test_check_of_changed_plan_is_refused(tenant: Any, token: ApprovalToken, plan: dict[str, Any]) -> None:
    verify(tenant, token, plan)
    changed = payloads.approvable_plan({**plan, "skills": ["b", "a"]})
    assert check(tenant, token, changed) is Reason.PLAN_HASH_MISMATCH


def test_check_of_edited_row_is_refused(tenant: Any, token: ApprovalToken, plan: dict[str, Any]) -> None:
    verify(tenant, token, plan)
    token.max_executions = 5
    assert check(tenant, token, payloads.approvable_plan(plan)) is Reason.INVALID_SIGNATURE


def test_check_after_expiry_is_refused(tenant: Any, token: ApprovalToken, plan: dict[str, Any]) -> None:
    verify(tenant, token, plan)
    with time_machine.travel(token.expires_at, tick=False):
        assert check(tenant, token, payloads.approvable_plan(plan)) is Reason.TOKEN_EXPIRED


def test_check_without_signing_key_is_ok(
    tenant: Any, token: ApprovalToken, plan: dict[str, Any], settings: Any
) -> None:
    verify(tenant, token, plan)
    settings.SILAS_SIGNING_KEY = ""
    assert check(tenant, token, payloads.approvable_plan(plan)) is Reason.OK


def test_verify_of_standing_token_for_child_is_ok(tenant: Any, standing: ApprovalToken, goal: dict[str, Any]) -> None:
    assert verify(tenant, standing, goal, spawn(tenant, goal)) is Reason.OK


def test_verify_of_standing_token_beyond_its_uses_is_refused(tenant: Any, standing: Any, goal: Any) -> None:
    reasons = [verify(tenant, standing, goal, spawn(tenant, goal)) for _ in range(3)]
    assert reasons == [Reason.OK, Reason.OK, Reason.EXECUTION_LIMIT_REACHED]


def test_check_of_verified_child_is_ok(tenant: Any, standing: ApprovalToken, goal: dict[str, Any]) -> None:
    child = spawn(tenant, goal)
    verify(tenant, standing, goal, child)
    assert check(tenant, standing, child) is Reason.OK


def test_check_of_sibling_never_verified_is_refused(tenant: Any, standing: ApprovalToken, goal: dict[str, Any]) -> None:
    verify(tenant, standing, goal, spawn(tenant, goal))
    assert check(tenant, standing, spawn(tenant, goal)) is Reason.TOKEN_NOT_CONSUMED


def test_check_of_child_of_edited_goal_is_refused(tenant: Any, standing: ApprovalToken, goal: dict[str, Any]) -> None:
    child = spawn(tenant, goal)
    verify(tenant, standing, goal, child)
    edited = payloads.approvable_plan({**goal, "skills": ["desk", "shell"]})
    moved = Approvable(child.id, child.plan_hash, child.parent_id, child.body, child.policy, edited)
    assert check(tenant, standing, moved) is Reason.PLAN_HASH_MISMATCH


def test_issue_standing_token_without_template_is_refused(tenant: Any, owner: Any) -> None:
    with pytest.raises(SilasError) as refused:
        make_token(tenant, owner, make_plan(type="goal"), scope=ApprovalScope.STANDING)
    assert refused.value.code == "spawn_policy_missing"


def test_issue_token_for_declined_decision_is_refused(tenant: Any, owner: Any, plan: dict[str, Any]) -> None:
    card, subject = open_card(tenant, plan), payloads.approvable_plan(plan)
    with tenant_scope(tenant):
        decision = decide_card(card.pk, user=owner, verdict=ApprovalVerdict.DECLINED)
    with pytest.raises(SilasError) as refused, tenant_scope(tenant):
        issue_token(subject, decision, ApprovalScope.FULL_PLAN, expires_in=timedelta(minutes=1))
    assert refused.value.code == "not_approved"


def test_token_cannot_be_rewritten(tenant: Any, token: ApprovalToken) -> None:
    with pytest.raises(DatabaseError, match="cannot be rewritten"), tenant_scope(tenant):
        ApprovalToken.objects.filter(pk=token.pk).update(max_executions=9)


def test_use_cannot_be_deleted(tenant: Any, token: ApprovalToken, plan: dict[str, Any]) -> None:
    verify(tenant, token, plan)
    with pytest.raises(DatabaseError, match="cannot be rewritten"), tenant_scope(tenant):
        TokenUse.objects.all().delete()


def test_use_with_taken_ordinal_is_refused(tenant: Any, token: ApprovalToken, plan: dict[str, Any]) -> None:
    verify(tenant, token, plan)
    with tenant_scope(tenant):
        use = TokenUse.objects.get()
    use.pk, use.binding = uuid4(), "another"
    with pytest.raises(IntegrityError), tenant_scope(tenant):
        use.save(force_insert=True)


def test_signature_of_stored_token_is_the_contract_form(tenant: Any, token: ApprovalToken) -> None:
    stored = SignedToken.of_row(reload(tenant, token))
    assert json.loads(stored.model_dump_json())["signature"] == token.signature


def test_payload_survives_the_database(tenant: Any) -> None:
    plan = make_plan(title="ü \u2028 \U0001f600", budget={**vectors.BASE["budget"], "max_cost_usd": 0.0000001})
    card = open_card(tenant, plan)
    with tenant_scope(tenant):
        card.refresh_from_db()
    assert payloads.payload_hash(card.payload) == payloads.plan_hash(plan)
