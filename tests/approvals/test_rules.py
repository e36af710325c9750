"""Golden signatures and spawn policies, every refusal of a token, and the risk ladder."""

from __future__ import annotations

import base64
import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from apps.approvals import rules
from apps.approvals.enums import ApprovalScope, ApprovalVerdict, Reason
from apps.approvals.tokens.schemas import Approvable, SignedToken, SpawnPolicy, TokenClaims
from kernel.canonical import canonical_bytes
from tests.approvals import vectors

START = datetime(2026, 2, 1, 12, 0, tzinfo=UTC)
END = START + timedelta(minutes=30)
MIDDLE = START + timedelta(minutes=10)
KEY = Ed25519PrivateKey.from_private_bytes(vectors.SEED)
TASK = Approvable(id="task-1", plan_hash=vectors.V1)
TEMPLATE = 'Fix it: $failed_checks\n\n```call\n{"tool": "refund", "args": {"amount": "$amount"}}\n```'
BODY = 'Fix it: ping failed\n\n```call\n{"tool": "refund", "args": {"amount": 12.5}}\n```'
POLICY = SpawnPolicy(
    failure_context=TEMPLATE,
    skills=("desk", "mail"),
    gates=(vectors.GATE,),
    verify=(vectors.CHECK,),
    on_failure="spawn_task",
)
GOAL = Approvable(id="goal-1", plan_hash=vectors.V2, policy=POLICY)


def sign(**changes: Any) -> SignedToken:
    claims = {
        "plan_hash": vectors.V1,
        "work_item_id": "task-1",
        "scope": "full_plan",
        "verdict": "approved",
        "issued_at": START,
        "expires_at": END,
        "nonce": "n-1",
        **changes,
    }
    signature = KEY.sign(rules.signed_bytes(TokenClaims(**claims)))
    return SignedToken(token_id="t", signature=signature, **claims)


def standing(**changes: Any) -> SignedToken:
    conditions = {"spawn_policy_hash": rules.spawn_policy_hash(POLICY)}
    claims = {"scope": "standing", "work_item_id": "goal-1", "plan_hash": vectors.V2, "max_executions": 5}
    return sign(**{**claims, "conditions": conditions, **changes})


def child(body: str = BODY, parent: str = "goal-1", **policy: Any) -> Approvable:
    changed = POLICY.model_copy(update=policy)
    made = {"plan_hash": vectors.V3, "rendered_hash": vectors.V3}
    return Approvable(id="task-2", parent_id=parent, body=body, policy=changed, goal=GOAL, **made)


def spend(token: SignedToken, subject: Approvable = TASK, spawned: Approvable | None = None) -> Reason:
    return rules.spend_verdict(token, subject, spawned=spawned, now=MIDDLE).reason


def run(token: SignedToken, subject: Approvable = TASK, used: int = 1, bound: bool = True) -> Reason:
    return rules.run_verdict(token, subject, now=MIDDLE, used=used, used_for_subject=bound).reason


# --- signatures


def test_signature_of_golden_token_is_t1() -> None:
    assert base64.b64encode(sign().signature).decode() == vectors.T1


def test_signature_of_golden_message_is_m1() -> None:
    message = {"text": "a|b", "nonce": "n1", "timestamp": START.isoformat()}
    assert base64.b64encode(KEY.sign(canonical_bytes(message))).decode() == vectors.M1


def test_token_signed_by_the_key_is_accepted() -> None:
    assert rules.is_signed_by(sign(), vectors.PUBLIC_KEY)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("plan_hash", vectors.V2),
        ("work_item_id", "task-2"),
        ("scope", ApprovalScope.STANDING),
        ("verdict", ApprovalVerdict.DECLINED),
        ("issued_at", START - timedelta(microseconds=1)),
        ("expires_at", END + timedelta(microseconds=1)),
        ("nonce", "n-2"),
        ("approval_strength", "biometric"),
        ("conditions", {"a": 1}),
        ("max_executions", 2),
    ],
)
def test_token_with_changed_signed_field_is_refused(field: str, value: object) -> None:
    changed = sign().model_copy(update={field: _enum_like(value) if field == "approval_strength" else value})
    assert not rules.is_signed_by(changed, vectors.PUBLIC_KEY)


def _enum_like(value: object) -> Any:
    return type("Strength", (), {"value": value})()


def test_token_with_other_token_id_is_still_the_same_token() -> None:
    assert rules.is_signed_by(sign().model_copy(update={"token_id": "renamed"}), vectors.PUBLIC_KEY)


def test_token_under_other_key_is_refused() -> None:
    other = Ed25519PrivateKey.generate().public_key().public_bytes_raw()
    assert not rules.is_signed_by(sign(), other)


def test_token_under_malformed_key_is_refused() -> None:
    assert not rules.is_signed_by(sign(), b"short")


@given(st.binary(max_size=80))
def test_token_with_any_other_signature_is_refused(signature: bytes) -> None:
    assert not rules.is_signed_by(sign().model_copy(update={"signature": signature}), vectors.PUBLIC_KEY)


@given(st.dictionaries(st.text(max_size=5), st.integers(), min_size=1, max_size=3))
def test_token_with_any_added_condition_is_refused(conditions: dict[str, int]) -> None:
    assert not rules.is_signed_by(sign().model_copy(update={"conditions": conditions}), vectors.PUBLIC_KEY)


# --- the token's shape


def test_token_json_round_trip_keeps_signature() -> None:
    token = sign()
    assert SignedToken.model_validate_json(token.model_dump_json()).signature == token.signature


def test_token_json_holds_signature_as_base64() -> None:
    assert json.loads(sign().model_dump_json())["signature"] == vectors.T1


@pytest.mark.parametrize("signature", ["not base64!", "abc", "ü"])
def test_token_with_bad_base64_is_rejected(signature: str) -> None:
    with pytest.raises(ValidationError):
        SignedToken.model_validate({**sign().model_dump(), "signature": signature})


@pytest.mark.parametrize(
    "change",
    [
        {"issued_at": datetime(2026, 2, 1)},  # noqa: DTZ001
        {"expires_at": START},
        {"nonce": ""},
        {"max_executions": 0},
        {"approval_strength": "biometric"},
        {"plan_hash": "short"},
        {"surprise": 1},
    ],
    ids=lambda change: next(iter(change)),
)
def test_claims_with_bad_field_are_rejected(change: dict[str, Any]) -> None:
    claims = {key: value for key, value in sign().model_dump().items() if key not in ("token_id", "signature")}
    with pytest.raises(ValidationError):
        TokenClaims.model_validate({**claims, **change})


def test_claims_in_other_zone_sign_the_same_bytes() -> None:
    paris = START.astimezone(tz=datetime.fromisoformat("2026-02-01T13:00:00+01:00").tzinfo)
    assert rules.signed_bytes(sign(issued_at=paris)) == rules.signed_bytes(sign())


# --- spending


def test_spend_of_fitting_token_is_allowed() -> None:
    assert spend(sign()) is Reason.OK


@pytest.mark.parametrize("verdict", [v for v in ApprovalVerdict if v is not ApprovalVerdict.APPROVED])
def test_spend_with_other_verdict_is_refused(verdict: ApprovalVerdict) -> None:
    assert spend(sign(verdict=verdict)) is Reason.NOT_APPROVED


def test_spend_for_changed_plan_is_refused() -> None:
    assert spend(sign(), Approvable(id="task-1", plan_hash=vectors.V2)) is Reason.PLAN_HASH_MISMATCH


def test_spend_for_other_item_is_refused() -> None:
    assert spend(sign(), Approvable(id="task-9", plan_hash=vectors.V1)) is Reason.SUBJECT_MISMATCH


@pytest.mark.parametrize(
    ("now", "reason"),
    [
        (END - timedelta(microseconds=1), Reason.OK),
        (END, Reason.TOKEN_EXPIRED),
        (END + timedelta(days=1), Reason.TOKEN_EXPIRED),
    ],
)
def test_spend_around_expiry(now: datetime, reason: Reason) -> None:
    assert rules.spend_verdict(sign(), TASK, spawned=None, now=now).reason is reason


def test_spend_of_single_use_token_for_a_child_is_refused() -> None:
    token = sign(work_item_id="goal-1", plan_hash=vectors.V2)
    assert spend(token, GOAL, child()) is Reason.SPAWN_NOT_ALLOWED


# --- running


def test_run_after_spend_is_allowed() -> None:
    assert run(sign()) is Reason.OK


def test_run_without_spend_is_refused() -> None:
    assert run(sign(), used=0, bound=False) is Reason.TOKEN_NOT_CONSUMED


def test_run_of_sibling_never_verified_is_refused() -> None:
    assert run(standing(), child(), used=1, bound=False) is Reason.TOKEN_NOT_CONSUMED


def test_run_with_too_many_uses_is_refused() -> None:
    assert run(sign(), used=2) is Reason.EXECUTION_LIMIT_EXCEEDED


def test_run_under_standing_token_without_goal_is_refused() -> None:
    orphan = Approvable(id="task-2", plan_hash=vectors.V3, parent_id="goal-1", body=BODY, policy=POLICY)
    assert run(standing(), orphan) is Reason.STANDING_PARENT_MISMATCH


def test_run_of_child_inside_policy_is_allowed() -> None:
    assert run(standing(), child()) is Reason.OK


# --- standing approvals


def test_spend_of_standing_token_for_fitting_child_is_allowed() -> None:
    assert spend(standing(), GOAL, child()) is Reason.OK


def test_spend_of_standing_token_without_child_is_refused() -> None:
    assert spend(standing(), GOAL) is Reason.STANDING_REQUIRES_SPAWNED_TASK


def test_spend_of_standing_token_for_other_parent_is_refused() -> None:
    assert spend(standing(), GOAL, child(parent="goal-2")) is Reason.STANDING_PARENT_MISMATCH


def test_spend_of_standing_token_without_policy_hash_is_refused() -> None:
    assert spend(standing(conditions={}), GOAL, child()) is Reason.SPAWN_POLICY_MISMATCH


def test_spend_of_standing_token_for_edited_goal_is_refused() -> None:
    edited = Approvable(id="goal-1", plan_hash=vectors.V3, policy=POLICY)
    assert spend(standing(), edited, child()) is Reason.PLAN_HASH_MISMATCH


def test_spend_of_standing_token_for_child_that_is_not_what_its_goal_makes_is_refused() -> None:
    assert spend(standing(), GOAL, replace(child(), rendered_hash=vectors.V2)) is Reason.SPAWN_OUTSIDE_POLICY


def test_spend_of_standing_token_for_child_that_nobody_made_again_is_refused() -> None:
    assert spend(standing(), GOAL, replace(child(), rendered_hash="")) is Reason.SPAWN_OUTSIDE_POLICY


def test_run_of_child_that_is_not_what_its_goal_makes_is_refused() -> None:
    assert run(standing(), replace(child(), rendered_hash=vectors.V2)) is Reason.SPAWN_OUTSIDE_POLICY


# --- spawn policy


def s1_policy(skills: tuple[str, ...] = ("b", "a", "a")) -> SpawnPolicy:
    return SpawnPolicy(
        failure_context="Fix: $failed_checks",
        skills=skills,
        gates=(vectors.GATE,),
        verify=(vectors.CHECK,),
        on_failure="spawn_task",
        escalation={
            "spawn_task": vectors.escalation("spawn_task"),
            "abort": vectors.escalation("report", "stop"),
            "unused": vectors.escalation("respond"),
        },
    )


def test_spawn_policy_hash_of_empty_policy_is_s0() -> None:
    assert rules.spawn_policy_hash(SpawnPolicy()) == vectors.S0


def test_spawn_policy_hash_of_full_policy_is_s1() -> None:
    assert rules.spawn_policy_hash(s1_policy()) == vectors.S1


@given(st.permutations(["b", "a", "a"]))
def test_spawn_policy_hash_with_reordered_skills_is_unchanged(skills: list[str]) -> None:
    assert rules.spawn_policy_hash(s1_policy(tuple(skills))) == vectors.S1


@given(st.permutations(["x", "y", "z"]))
def test_spawn_policy_hash_with_reordered_gates_and_checks_is_unchanged(names: list[str]) -> None:
    def policy(order: list[str]) -> SpawnPolicy:
        gates = tuple({**vectors.GATE, "name": name} for name in order)
        return SpawnPolicy(gates=gates, verify=tuple({**vectors.CHECK, "name": name} for name in order))

    assert rules.spawn_policy_hash(policy(names)) == rules.spawn_policy_hash(policy(["x", "y", "z"]))


@pytest.mark.parametrize(
    "change",
    [
        {"failure_context": "Fix it"},
        {"skills": ("a",)},
        {"gates": ()},
        {"verify": ()},
        {"on_failure": "abort"},
        {"escalation": {}},
    ],
    ids=lambda change: next(iter(change)),
)
def test_spawn_policy_hash_with_changed_part_differs(change: dict[str, Any]) -> None:
    assert rules.spawn_policy_hash(s1_policy().model_copy(update=change)) != vectors.S1


# --- risk
