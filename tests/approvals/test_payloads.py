"""Golden plan and batch hashes, and what a payload may not hold."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.approvals.tokens import payloads
from kernel.errors import SilasError
from tests.approvals import vectors

UNSTABLE = [float("nan"), float("inf"), 1e16, -0.0, 2**63, "\x00", "\ud800", {1: "a"}, {"\ud800": 1}, b"a", {1, 2}]


def plan(**changes: Any) -> dict[str, Any]:
    return {**vectors.BASE, **changes}


def test_plan_hash_of_base_is_v1() -> None:
    assert payloads.plan_hash(vectors.BASE) == vectors.V1


def test_plan_hash_with_check_and_skills_is_v2() -> None:
    assert payloads.plan_hash(plan(verify=[vectors.CHECK], skills=["coding", "git"])) == vectors.V2


def test_plan_hash_with_reversed_skills_differs() -> None:
    assert payloads.plan_hash(plan(verify=[vectors.CHECK], skills=["git", "coding"])) == vectors.V2_REVERSED


def test_plan_hash_with_umlaut_is_v2b() -> None:
    assert payloads.plan_hash(plan(title="Zeitzone ü")) == vectors.V2B


def test_plan_hash_with_gate_is_v3() -> None:
    assert payloads.plan_hash(plan(gates=[vectors.GATE])) == vectors.V3


def test_batch_hash_is_golden() -> None:
    batch = payloads.batch_payload(goal_id="g1", action="archive", item_ids=["3", "1", "2"])
    assert payloads.payload_hash(batch) == vectors.BATCH


def test_batch_hash_of_subset_is_golden() -> None:
    batch = payloads.batch_payload(goal_id="g1", action="archive", item_ids=["3", "2"])
    assert payloads.payload_hash(batch) == vectors.BATCH_SUBSET


def test_batch_hash_with_other_order_differs() -> None:
    batch = payloads.batch_payload(goal_id="g1", action="archive", item_ids=["1", "2", "3"])
    assert payloads.payload_hash(batch) != vectors.BATCH


def test_tool_call_payload_names_tool_and_args_only() -> None:
    assert payloads.tool_call_payload("refund", {"amount": 5}) == {"tool": "refund", "args": {"amount": 5}}


@pytest.mark.parametrize(
    "field", ["needs_approval", "approval_token", "status", "attempts", "budget_used", "created_at"]
)
def test_plan_hash_with_runtime_field_is_unchanged(field: str) -> None:
    assert payloads.plan_hash(plan(**{field: "anything"})) == vectors.V1


@pytest.mark.parametrize("field", payloads.PLAN_FIELDS)
def test_plan_hash_with_changed_field_differs(field: str) -> None:
    assert payloads.plan_hash(plan(**{field: "something else"})) != vectors.V1


@pytest.mark.parametrize("field", payloads.PLAN_FIELDS)
def test_plan_hash_without_field_is_refused(field: str) -> None:
    short = {key: value for key, value in vectors.BASE.items() if key != field}
    with pytest.raises(SilasError, match="lacks fields"):
        payloads.plan_hash(short)


def test_plan_binds_twenty_three_fields() -> None:
    assert len(payloads.PLAN_FIELDS) == 23


@pytest.mark.parametrize("value", UNSTABLE, ids=repr)
def test_payload_with_unstable_value_is_refused(value: object) -> None:
    with pytest.raises(SilasError) as refusal:
        payloads.payload_hash({"deep": [{"value": value}]})
    assert refusal.value.code == "payload_not_canonical"


@given(st.permutations(list(vectors.BASE.items())))
def test_plan_hash_with_reordered_keys_is_unchanged(items: list[tuple[str, Any]]) -> None:
    assert payloads.plan_hash(dict(items)) == vectors.V1


@given(st.lists(st.text(max_size=3), unique=True, min_size=2, max_size=5), st.randoms())
def test_batch_hash_with_any_other_order_differs(items: list[str], random: Any) -> None:
    shuffled = random.sample(items, len(items))
    first, second = (payloads.batch_payload(goal_id="g", action="a", item_ids=ids) for ids in (items, shuffled))
    try:
        same = payloads.payload_hash(first) == payloads.payload_hash(second)
    except SilasError:
        return
    assert same == (items == shuffled)
