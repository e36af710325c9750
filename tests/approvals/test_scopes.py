"""Every scope binds exactly the keys of its shape, through one path."""

from __future__ import annotations

import ast
import inspect
from typing import Any

import pytest

from apps.approvals.enums import ApprovalScope
from apps.approvals.tokens import payloads, scopes
from kernel.errors import SilasError
from tests.approvals import vectors

CALL = {"work_item_id": "task-1", "plan_hash": vectors.V1}
CHANGE = {"key": "batch_review.default_size", "current_value": "10", "proposed_value": "20", "direction": "widen"}
EVIDENCE: dict[str, Any] = {
    "scope_id": "s-1",
    "goal_id": "g1",
    "changes": [CHANGE],
    "sample_size": 40,
    "correction_rate": 0.025,
    "evidence_window": "30 days",
}
PAYLOADS: list[tuple[ApprovalScope, dict[str, Any], str]] = [
    (ApprovalScope.FULL_PLAN, vectors.BASE, "task-1"),
    (ApprovalScope.STANDING, vectors.BASE, "task-1"),
    (ApprovalScope.SINGLE_STEP, payloads.call_payload("refund", {"amount": 5}, step=2, **CALL), "task-1"),
    (
        ApprovalScope.SINGLE_STEP,
        payloads.gate_payload("p-1", "every_agent_response", [{"name": "g", "reason": ""}], {"response": "Hi"}),
        "p-1",
    ),
    (ApprovalScope.SKILL_INSTALL, {"skill": "desk", "content_hash": vectors.V2, "report_hash": vectors.V3}, "desk"),
    (ApprovalScope.BUDGET, {**CALL, "before": {"max_attempts": 5}, "after": {"max_attempts": 9}}, "task-1"),
    (ApprovalScope.CONNECTION_ACT, payloads.batch_payload(goal_id="g1", action="archive", item_ids=["3"]), "g1"),
    (ApprovalScope.CONNECTION_MANAGE, {"connection_id": "c", "operation": "widen", "before": [], "after": ["w"]}, "c"),
    (ApprovalScope.AUTONOMY_THRESHOLD, payloads.autonomy_payload(**EVIDENCE), "s-1"),
]


def test_every_scope_has_a_shape() -> None:
    assert set(scopes.SHAPES) == set(ApprovalScope)


def test_table_in_the_docstring_names_every_scope() -> None:
    rows = [line.split("|")[1].strip() for line in inspect.getdoc(scopes).splitlines() if line.startswith("| ")]  # type: ignore[union-attr]
    assert rows[1:]
    assert set(rows[1:]) == {scope.value for scope in ApprovalScope}


@pytest.mark.parametrize(("scope", "payload", "subject"), PAYLOADS)
def test_payload_of_a_scope_names_its_subject(scope: ApprovalScope, payload: dict[str, Any], subject: str) -> None:
    assert payloads.approvable(scope, payload).id == subject


@pytest.mark.parametrize(("scope", "payload", "_"), PAYLOADS)
def test_payload_of_a_scope_is_hashed_by_the_one_path(scope: ApprovalScope, payload: dict[str, Any], _: str) -> None:
    assert payloads.approvable(scope, payload).plan_hash == payloads.payload_hash(payload)


@pytest.mark.parametrize(("scope", "payload", "_"), PAYLOADS)
@pytest.mark.parametrize("change", ["more", "less"])
def test_payload_with_other_keys_is_refused(scope: ApprovalScope, payload: dict[str, Any], _: str, change: str) -> None:
    changed = {**payload, "extra": 1} if change == "more" else dict(list(payload.items())[1:])
    with pytest.raises(SilasError) as refused:
        payloads.approvable(scope, changed)
    assert refused.value.code == "payload_shape"


@pytest.mark.parametrize(("scope", "payload", "_"), PAYLOADS)
def test_payload_of_one_scope_is_refused_by_every_other(scope: ApprovalScope, payload: dict[str, Any], _: str) -> None:
    plans = {ApprovalScope.FULL_PLAN, ApprovalScope.STANDING}
    others = set(ApprovalScope) - (plans if scope in plans else {scope})
    for other in others:
        with pytest.raises(SilasError):
            payloads.approvable(other, payload)


def test_payload_without_a_subject_is_refused() -> None:
    with pytest.raises(SilasError):
        payloads.approvable(ApprovalScope.FULL_PLAN, {**vectors.BASE, "id": ""})


def test_order_of_changes_counts() -> None:
    tighter = {**CHANGE, "direction": "tighten"}
    first, second = (
        payloads.autonomy_payload(**{**EVIDENCE, "changes": changes})
        for changes in ([CHANGE, tighter], [tighter, CHANGE])
    )
    assert payloads.payload_hash(first) != payloads.payload_hash(second)


@pytest.mark.parametrize("key", list(EVIDENCE))
def test_every_part_of_an_autonomy_proposal_is_bound(key: str) -> None:
    other = payloads.autonomy_payload(**{**EVIDENCE, key: [] if key == "changes" else None})
    assert payloads.payload_hash(other) != payloads.payload_hash(payloads.autonomy_payload(**EVIDENCE))


def test_autonomy_payload_is_golden() -> None:
    """Six keys, canonical JSON (contract silas 8, gap): spelled out here so that it never drifts."""
    text = (
        '{"changes":[{"current_value":"10","direction":"widen","key":"batch_review.default_size","proposed_value":"20"}],'
        '"correction_rate":0.025,"evidence_window":"30 days","goal_id":"g1","sample_size":40,"scope_id":"s-1"}'
    )
    assert payloads.payload_hash(payloads.autonomy_payload(**EVIDENCE)) == payloads.payload_hash(ast.literal_eval(text))


def test_batch_that_names_an_item_twice_is_refused() -> None:
    with pytest.raises(SilasError):
        payloads.batch_payload(goal_id="g1", action="archive", item_ids=["1", "1"])
