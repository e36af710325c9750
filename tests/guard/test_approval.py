"""What gates and people said about a call: blocked, asked, rewritten, approved once."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from apps.approvals.keys.services import rotate_key
from apps.approvals.tokens.payloads import payload_hash
from apps.approvals.tokens.schemas import GatePass
from apps.approvals.tokens.services import revoke_token
from apps.gates.enums import GateAction, GateCode, GateLane, GateTrigger
from apps.gates.providers import PROVIDERS
from apps.gates.schemas import GateResult, GateSpec
from apps.guard.enums import RefusalCode
from apps.guard.schemas import CallFailed, Done, HandlerResult, Limits, NeedsApproval, Refused
from kernel.tenancy import tenant_scope
from tests.factories.approvals import make_plan, make_token
from tests.factories.guard import answer, audited, change_run, make_call, make_run
from tests.guard.conftest import Handle, approving, call, failing, never, refused

BLOCKS = GateSpec(
    name="limit",
    on="on_tool_call",
    type="numeric_range",
    extract="amount",
    auto_approve={"min": 0, "max": 10},
    block={"outside": (0, 10)},
)
ASKS = GateSpec(name="ask", on="on_tool_call", type="approval_always")
BLOCKED = make_call(args={"amount": 500}, gates=(BLOCKS,))
ASKED = make_call(gates=(ASKS,))
ACT = make_call(tool="act", args={"to": "x"}, acting=True)


def passing(args: dict[str, Any]) -> GatePass:
    return GatePass(GateTrigger.ON_TOOL_CALL, frozenset({"ask"}), payload_hash({"tool": "look_up", "args": args}))


def test_gate_that_blocks_refuses_with_its_name_and_what_it_said_is_written_down(tenant: Any, handle: Handle) -> None:
    handle(never)
    run = make_run(tenant)
    outcome = call(run, BLOCKED)
    assert isinstance(outcome, Refused)
    assert outcome.code is RefusalCode.GATE_BLOCKED
    assert outcome.gate == "limit"
    assert [event for event, _ in audited(run)] == ["gate_blocked", "tool_call"]


def test_gate_that_lets_through_changes_nothing(tenant: Any, handle: Handle) -> None:
    handle(answer())
    assert isinstance(call(make_run(tenant), replace(BLOCKED, args={"amount": 5})), Done)


def test_halted_run_asks_no_gate(tenant: Any, handle: Handle) -> None:
    handle(never)
    run = make_run(tenant)
    change_run(run, halt_state="halted")
    call(run, BLOCKED)
    assert [event for event, _ in audited(run)] == ["halted"]


def test_acting_call_without_any_approval_needs_one(tenant: Any, handle: Handle) -> None:
    handle(never)
    assert isinstance(call(make_run(tenant), ACT), NeedsApproval)


@pytest.mark.parametrize("other", [{"args": {"to": "y"}}, {"args": {"to": "x", "more": 1}}, {"tool": "other"}])
def test_acting_call_that_nobody_approved_exactly_is_refused(tenant: Any, handle: Handle, other: Any) -> None:
    handle(never)
    asked = replace(ACT, access=frozenset({"act", "other"}), **other)
    assert call(make_run(tenant, approval=approving(ACT)), asked) == refused(RefusalCode.APPROVAL_MISSING)


@pytest.mark.parametrize("given", [None, approving(replace(ACT, args={"to": "y"}))], ids=["none", "another"])
def test_approval_that_only_the_row_of_the_run_says_is_believed_by_nobody(
    tenant: Any, handle: Handle, given: Any
) -> None:
    """Whoever writes rows writes one; the caller knows which it has verified."""
    handle(never)
    run = make_run(tenant, approval=given)
    change_run(run, approval=approving(ACT).model_dump(mode="json"))
    outcome = call(run, ACT)
    assert outcome == refused(RefusalCode.APPROVAL_MISSING) if given else isinstance(outcome, NeedsApproval)


def test_approved_call_is_made_once_in_all_attempts_and_audited_with_its_digest(tenant: Any, handle: Handle) -> None:
    handle(answer("done"))
    first, second = (make_run(tenant, approval=approving(ACT)) for _ in range(2))
    assert isinstance(call(first, ACT), Done)
    assert all(ACT.digest in data for _, data in audited(first))
    for run in (first, second):
        assert call(run, ACT) == refused(RefusalCode.APPROVAL_SPENT)


def test_same_call_under_another_approval_happens(tenant: Any, handle: Handle) -> None:
    handle(answer("done"))
    for nonce in ("n-1", "n-2"):
        assert isinstance(call(make_run(tenant, approval=approving(ACT, nonce=nonce)), ACT), Done)


@pytest.mark.parametrize(
    ("passes", "approval", "passed"),
    [
        ((passing({"n": 1}),), None, True),
        ((passing({"n": 2}),), None, False),
        ((), None, False),
        # A standing approval covers the call, and is nobody's look at it (ADR 101).
        ((), approving(ASKED), False),
    ],
    ids=["a pass for this call", "a pass for another", "nothing", "the run's approval"],
)
def test_gates_question_is_answered_by_a_pass_for_the_exact_call_alone(
    tenant: Any, handle: Handle, passes: Any, approval: Any, passed: bool
) -> None:
    handle(answer("done") if passed else never)
    outcome = call(make_run(tenant, approval=approval), replace(ASKED, passes=passes))
    assert isinstance(outcome, Done) if passed else isinstance(outcome, NeedsApproval) and outcome.gate == "ask"


@pytest.fixture
def rewritten(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The arguments of every call, as a provider of somebody's own rewrites them (contract silas 6)."""
    args = {"n": 2, "to": "elsewhere"}
    result = GateResult(
        "own", GateLane.POLICY, GateAction.CONTINUE, GateCode.PASSED, modified_context={"tool_args": args}
    )
    monkeypatch.setattr(PROVIDERS["predicate"], "evaluate", lambda _: result)
    return args


def test_call_rewritten_by_a_gate_is_made_as_rewritten(tenant: Any, handle: Handle, rewritten: dict[str, Any]) -> None:
    handle(lambda context: HandlerResult(context.args))
    outcome = call(make_run(tenant), ASKED)
    assert isinstance(outcome, Done)
    assert outcome.value == rewritten


@pytest.mark.usefixtures("rewritten")
def test_approved_call_rewritten_by_a_gate_is_no_longer_approved(tenant: Any, handle: Handle) -> None:
    handle(never)
    run = make_run(tenant, approval=approving(ACT))
    assert call(run, replace(ACT, gates=(ASKS,))) == refused(RefusalCode.APPROVAL_MISSING)


@pytest.mark.parametrize("effect_free", [True, False])
def test_approved_call_that_failed_is_made_again_only_if_it_had_no_effect(
    tenant: Any, handle: Handle, effect_free: bool
) -> None:
    handle(failing(CallFailed("busy", "Not now.", effect_free=True) if effect_free else RuntimeError("half way")))
    call(make_run(tenant, approval=approving(ACT)), ACT)
    handle(answer("done") if effect_free else never)
    again = call(make_run(tenant, approval=approving(ACT)), ACT)
    assert isinstance(again, Done) if effect_free else again == refused(RefusalCode.EFFECT_UNCERTAIN)


@pytest.mark.parametrize("since", ["nothing", "revoked", "key void"])
def test_approval_that_ended_after_the_run_was_opened_is_refused(
    tenant: Any, owner: Any, handle: Handle, since: str
) -> None:
    """It is asked about again when the call is about to happen."""
    handle(answer("done") if since == "nothing" else never)
    token = make_token(tenant, owner, make_plan())
    run = make_run(tenant, approval=approving(ACT, token=token.nonce))
    with tenant_scope(tenant):
        if since == "revoked":
            revoke_token(token, user=owner, reason="A mistake.")
        if since == "key void":
            rotate_key(owner, actor="user:test", compromised=True)
    outcome = call(run, ACT)
    assert isinstance(outcome, Done) if since == "nothing" else outcome == refused(RefusalCode.APPROVAL_VOID)


@pytest.mark.parametrize(
    ("opened", "changed", "gates", "code"),
    [
        ({}, {}, (BLOCKS,), RefusalCode.GATE_BLOCKED),
        ({}, {"halt_state": "halted"}, (), RefusalCode.HALTED),
        ({}, {"halt_state": "paused"}, (), RefusalCode.PAUSED),
        ({"limits": Limits(calls=0)}, {}, (), RefusalCode.BUDGET_TOOL_CALLS),
    ],
)
def test_approved_call_is_held_to_gates_brakes_and_budget_again(
    tenant: Any, handle: Handle, opened: Any, changed: Any, gates: Any, code: RefusalCode
) -> None:
    handle(never)
    asked = make_call(tool="act", args={"amount": 500}, acting=True, gates=gates)
    run = make_run(tenant, approval=approving(asked), **opened)
    change_run(run, **{"phase": "interactive", **changed})
    outcome = call(run, asked)
    assert isinstance(outcome, Refused)
    assert outcome.code is code
