"""What gates and people said about a call: blocked, asked, rewritten, approved once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from apps.approvals.keys.services import rotate_key
from apps.approvals.tokens.payloads import payload_hash
from apps.approvals.tokens.schemas import GatePass
from apps.approvals.tokens.services import revoke_token
from apps.gates.enums import GateTrigger
from apps.gates.schemas import GateSpec
from apps.guard.enums import RefusalCode
from apps.guard.schemas import (
    ApprovedCalls,
    CallContext,
    CallFailed,
    Done,
    HandlerResult,
    Limits,
    NeedsApproval,
    Refused,
    call_digest,
)
from kernel.tenancy import tenant_scope
from tests.factories.approvals import make_plan, make_token
from tests.factories.guard import answer, audited, change_run, make_call, make_run
from tests.guard.conftest import call, never, refused

Handle = Callable[..., None]


BLOCKS = GateSpec(
    name="limit",
    on="on_tool_call",
    type="numeric_range",
    extract="amount",
    auto_approve={"min": 0, "max": 10},
    block={"outside": (0, 10)},
)
ASKS = GateSpec(name="ask", on="on_tool_call", type="approval_always")


def passing(args: dict[str, Any]) -> GatePass:
    return GatePass(GateTrigger.ON_TOOL_CALL, frozenset({"ask"}), payload_hash({"tool": "look_up", "args": args}))


def test_gate_that_blocks_refuses_with_its_name(tenant: Any, handle: Handle) -> None:
    handle(never)
    outcome = call(make_run(tenant), make_call(args={"amount": 500}, gates=(BLOCKS,)))
    assert isinstance(outcome, Refused) and (outcome.code, outcome.gate) == (RefusalCode.GATE_BLOCKED, "limit")


def test_gate_that_lets_through_changes_nothing(tenant: Any, handle: Handle) -> None:
    handle(answer())
    assert isinstance(call(make_run(tenant), make_call(args={"amount": 5}, gates=(BLOCKS,))), Done)


def test_gate_that_asks_answers_that_a_person_has_to(tenant: Any, handle: Handle) -> None:
    handle(never)
    outcome = call(make_run(tenant), make_call(gates=(ASKS,)))
    assert isinstance(outcome, NeedsApproval) and outcome.gate == "ask"


def test_halted_run_asks_no_gate(tenant: Any, handle: Handle) -> None:
    handle(never)
    run = make_run(tenant)
    change_run(run, halt_state="halted")
    call(run, make_call(args={"amount": 500}, gates=(BLOCKS,)))
    assert [event for event, _ in audited(run)] == ["halted"]


def test_what_a_gate_said_is_written_down_with_the_refusal(tenant: Any, handle: Handle) -> None:
    handle(never)
    run = make_run(tenant)
    call(run, make_call(args={"amount": 500}, gates=(BLOCKS,)))
    assert [event for event, _ in audited(run)] == ["gate_blocked", "tool_call"]


def approving(*calls: tuple[str, dict[str, Any]], nonce: str = "n-1") -> ApprovedCalls:
    return ApprovedCalls(nonce=nonce, calls=frozenset(call_digest(tool, args) for tool, args in calls))


ACT: dict[str, Any] = {"tool": "act", "args": {"to": "x"}, "acting": True}


def test_acting_call_without_any_approval_needs_one(tenant: Any, handle: Handle) -> None:
    handle(never)
    assert isinstance(call(make_run(tenant), make_call(**ACT)), NeedsApproval)


@pytest.mark.parametrize(
    "asked",
    [
        {**ACT, "args": {"to": "y"}},
        {**ACT, "args": {"to": "x", "more": 1}},
        {**ACT, "tool": "other"},
    ],
)
def test_acting_call_that_nobody_approved_exactly_is_refused(tenant: Any, handle: Handle, asked: Any) -> None:
    handle(never)
    run = make_run(tenant, approval=approving(("act", {"to": "x"})))
    assert call(run, make_call(**asked)) == refused(RefusalCode.APPROVAL_MISSING)


@pytest.mark.parametrize("given", [None, ("act", {"to": "y"})], ids=["none", "another"])
def test_approval_that_only_the_row_of_the_run_says_is_believed_by_nobody(
    tenant: Any, handle: Handle, given: Any
) -> None:
    """Whoever writes rows writes one; the caller knows which it has verified."""
    handle(never)
    run = make_run(tenant, approval=given and approving(given))
    change_run(run, approval=approving(("act", {"to": "x"})).model_dump(mode="json"))
    outcome = call(run, make_call(**ACT))
    assert outcome == refused(RefusalCode.APPROVAL_MISSING) if given else isinstance(outcome, NeedsApproval)


def test_approved_call_happens(tenant: Any, handle: Handle) -> None:
    handle(answer("done"))
    run = make_run(tenant, approval=approving(("act", {"to": "x"})))
    assert isinstance(call(run, make_call(**ACT)), Done)


def test_approved_call_is_audited_with_its_digest(tenant: Any, handle: Handle) -> None:
    handle(answer("done"))
    run = make_run(tenant, approval=approving(("act", {"to": "x"})))
    call(run, make_call(**ACT))
    assert all(call_digest("act", {"to": "x"}) in data for _, data in audited(run))


def test_approved_call_is_not_made_twice(tenant: Any, handle: Handle) -> None:
    handle(answer("done"))
    run = make_run(tenant, approval=approving(("act", {"to": "x"})))
    call(run, make_call(**ACT))
    assert call(run, make_call(**ACT)) == refused(RefusalCode.APPROVAL_SPENT)


def test_approved_call_is_not_made_again_by_the_next_attempt(tenant: Any, handle: Handle) -> None:
    handle(answer("done"))
    yes = approving(("act", {"to": "x"}))
    call(make_run(tenant, approval=yes), make_call(**ACT))
    assert call(make_run(tenant, approval=yes), make_call(**ACT)) == refused(RefusalCode.APPROVAL_SPENT)


def test_same_call_under_another_yes_happens(tenant: Any, handle: Handle) -> None:
    handle(answer("done"))
    outcomes = [
        call(make_run(tenant, approval=approving(("act", {"to": "x"}), nonce=nonce)), make_call(**ACT))
        for nonce in ("n-1", "n-2")
    ]
    assert [type(outcome) for outcome in outcomes] == [Done, Done]


def test_gates_question_is_answered_by_a_pass_for_the_exact_call(tenant: Any, handle: Handle) -> None:
    handle(answer("done"))
    assert isinstance(call(make_run(tenant), make_call(gates=(ASKS,), passes=(passing({"n": 1}),))), Done)


def test_gates_question_is_not_answered_by_a_pass_for_another_call(tenant: Any, handle: Handle) -> None:
    handle(never)
    asked = make_call(gates=(ASKS,), passes=(passing({"n": 2}),))
    assert isinstance(call(make_run(tenant), asked), NeedsApproval)


def test_gates_question_is_not_answered_by_the_runs_approval_alone(tenant: Any, handle: Handle) -> None:
    """A standing approval covers the call, and is nobody's look at it (ADR 101)."""
    handle(never)
    run = make_run(tenant, approval=approving(("look_up", {"n": 1})))
    assert isinstance(call(run, make_call(gates=(ASKS,))), NeedsApproval)


def test_call_rewritten_by_a_gate_is_made_as_rewritten(
    tenant: Any, handle: Handle, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[Any] = []
    handle(lambda context: seen.append(context.args) or HandlerResult(None))  # type: ignore[func-returns-value]
    rewrite(monkeypatch, {"n": 2})
    call(make_run(tenant), make_call(gates=(ASKS,)))
    assert seen == [{"n": 2}]


def test_approved_call_rewritten_by_a_gate_is_no_longer_approved(
    tenant: Any, handle: Handle, monkeypatch: pytest.MonkeyPatch
) -> None:
    handle(never)
    rewrite(monkeypatch, {"to": "elsewhere"})
    run = make_run(tenant, approval=approving(("act", {"to": "x"})))
    assert call(run, make_call(**ACT, gates=(ASKS,))) == refused(RefusalCode.APPROVAL_MISSING)


def rewrite(monkeypatch: pytest.MonkeyPatch, args: dict[str, Any]) -> None:
    """A provider of somebody's own that rewrites the arguments (contract silas 6: modified_context)."""
    from apps.gates.enums import GateAction, GateCode, GateLane
    from apps.gates.providers import PROVIDERS
    from apps.gates.schemas import GateResult

    result = GateResult(
        "own", GateLane.POLICY, GateAction.CONTINUE, GateCode.PASSED, modified_context={"tool_args": args}
    )
    monkeypatch.setattr(PROVIDERS["predicate"], "evaluate", lambda _: result)


def test_approved_call_that_failed_without_effect_may_be_retried(tenant: Any, handle: Handle) -> None:
    def fails(_: CallContext) -> HandlerResult:
        raise CallFailed("busy", "Not now.", effect_free=True)

    yes = approving(("act", {"to": "x"}))
    handle(fails)
    call(make_run(tenant, approval=yes), make_call(**ACT))
    handle(answer("done"))
    assert isinstance(call(make_run(tenant, approval=yes), make_call(**ACT)), Done)


def test_approved_call_that_failed_in_an_unknown_way_is_not_made_again(tenant: Any, handle: Handle) -> None:
    def fails(_: CallContext) -> HandlerResult:
        raise RuntimeError("half way")

    yes = approving(("act", {"to": "x"}))
    handle(fails)
    call(make_run(tenant, approval=yes), make_call(**ACT))
    handle(never)
    assert call(make_run(tenant, approval=yes), make_call(**ACT)) == refused(RefusalCode.EFFECT_UNCERTAIN)


def test_call_whose_approval_was_taken_back_is_refused(tenant: Any, owner: Any, handle: Handle) -> None:
    """The run was opened while the yes held: it is asked about again when the call is about to happen."""
    handle(never)
    token = make_token(tenant, owner, make_plan())
    given = approving(("act", {"to": "x"})).model_copy(update={"token": token.nonce})
    run = make_run(tenant, approval=given)
    with tenant_scope(tenant):
        revoke_token(token, user=owner, reason="A mistake.")
    assert call(run, make_call(**ACT)) == refused(RefusalCode.APPROVAL_VOID)


def test_call_whose_approver_s_key_is_void_is_refused(tenant: Any, owner: Any, handle: Handle) -> None:
    handle(never)
    token = make_token(tenant, owner, make_plan())
    run = make_run(tenant, approval=approving(("act", {"to": "x"})).model_copy(update={"token": token.nonce}))
    with tenant_scope(tenant):
        rotate_key(owner, actor="user:test", compromised=True)
    assert call(run, make_call(**ACT)) == refused(RefusalCode.APPROVAL_VOID)


def test_call_whose_approval_stands_happens(tenant: Any, owner: Any, handle: Handle) -> None:
    handle(answer("done"))
    token = make_token(tenant, owner, make_plan())
    run = make_run(tenant, approval=approving(("act", {"to": "x"})).model_copy(update={"token": token.nonce}))
    assert isinstance(call(run, make_call(**ACT)), Done)


def test_approved_call_is_held_to_its_gates_again(tenant: Any, handle: Handle) -> None:
    handle(never)
    run = make_run(tenant, approval=approving(("act", {"amount": 500})))
    asked = make_call(tool="act", args={"amount": 500}, acting=True, gates=(BLOCKS,))
    outcome = call(run, asked)
    assert isinstance(outcome, Refused) and outcome.code is RefusalCode.GATE_BLOCKED


@pytest.mark.parametrize("brake", ["halted", "paused"])
def test_approved_call_is_held_to_the_brakes_again(tenant: Any, handle: Handle, brake: str) -> None:
    handle(never)
    run = make_run(tenant, approval=approving(("act", {"to": "x"})))
    change_run(run, halt_state=brake)
    assert isinstance(call(run, make_call(**ACT)), Refused)


def test_approved_call_is_held_to_the_budget_again(tenant: Any, handle: Handle) -> None:
    handle(never)
    run = make_run(tenant, approval=approving(("act", {"to": "x"})), limits=Limits(calls=0))
    assert call(run, make_call(**ACT)) == refused(RefusalCode.BUDGET_TOOL_CALLS)
