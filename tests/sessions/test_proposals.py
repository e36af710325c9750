"""Is a plan taken in with what the visitor may do at that moment, and told in words that a gate need not see?"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from apps.access.rules import AccessController, Grant
from apps.audit.models import AuditEntry
from apps.gates.schemas import EscalationSpec, GateSpec
from apps.gates.services import save_gate
from apps.memory.models import MemoryItem
from apps.sessions import turn
from apps.sessions.locks import lock_session
from apps.sessions.models import ChatSession, ChronicleEntry
from apps.sessions.state import TurnState
from apps.work.locks import lock_customer, lock_item
from apps.work.models import WorkItem
from apps.work.services import cancellation
from kernel.clock import now
from kernel.tenancy import in_scope, in_thread, tenant_scope
from llm.calls import PlannedCall, call_block
from llm.schemas import AgentResponse, PlanAction
from tests.factories.batches import carry_out, found, route, undoable_desk
from tests.factories.memories import before_the_end
from tests.factories.sessions import make_session, say
from tests.factories.work import PROJECT, Desk, make_desk, note, plan
from tests.rivals import interrupted

PROMISE = "I have prepared this for you."


@pytest.fixture
def desk(tenant: Any, tmp_path: Path) -> Desk:
    return make_desk(tenant, tmp_path)


def propose(desk: Desk, *calls: PlannedCall, seconds_left: int = 900, customer: str = "C-1") -> list[str]:
    """What a turn of a verified visitor says when its model proposes a plan of these calls."""
    session = make_session(desk.deployment)
    say(session, "Please note it")
    with tenant_scope(desk.tenant):
        state = turn.open_turn(session.pk, consumer="test")
        assert state is not None
        grant = Grant("verified", now() + timedelta(seconds=seconds_left), {"identity": None}, customer)
        state.access = AccessController(state.policy.levels, grant)
        _take_in(state, PlanAction(action="propose", plan_markdown=plan(*calls)))
    with tenant_scope(desk.tenant):
        said = ChronicleEntry.objects.filter(session_id=session.pk, sender="bot").values_list("text", flat=True)
        return list(said)


def _take_in(state: TurnState, action: PlanAction) -> None:
    state.response = AgentResponse(message=PROMISE, plan_action=action)
    turn.close_turn(state)


def refused_by_a_gate(desk: Desk, escalation: EscalationSpec) -> tuple[list[str], int]:
    """What staff see when a gate refuses the plan of a turn: reports in the log, and tasks that wait for approval."""
    gate = GateSpec(name="never", on="on_tool_call", extract="order", allowed_values=["none"], on_block="then")
    session = make_session(desk.deployment)
    say(session, "Please note it")
    with tenant_scope(desk.tenant):
        save_gate(gate, deployment_id=desk.deployment.pk)
        state = turn.open_turn(session.pk, consumer="test")
        assert state is not None
        grant = Grant("verified", now() + timedelta(seconds=900), {"identity": None}, "C-1")
        state.access = AccessController(state.policy.levels, grant)
        state.policy = replace(state.policy, escalations={"then": escalation})
        action = PlanAction(action="propose", plan_markdown=plan(note()))
        state.response = AgentResponse(message="Well.", plan_action=action)
        turn.close_turn(state)
    with tenant_scope(desk.tenant):
        reports = AuditEntry.objects.filter(event="gate_reported").values_list("subject", flat=True)
        return list(reports), WorkItem.objects.filter(session_id=session.pk, status="pending").count()


def test_gate_that_refuses_a_plan_is_reported(desk: Desk) -> None:
    assert len(refused_by_a_gate(desk, EscalationSpec(action="report"))[0]) == 1


def test_gate_that_refuses_a_plan_may_ask_for_a_task(desk: Desk) -> None:
    look = call_block(PlannedCall("act", {"order": "none", "note": 50}))
    assert refused_by_a_gate(desk, EscalationSpec(action="spawn_task", instruction=look)) == ([], 1)


def promised(desk: Desk) -> list[str]:
    with tenant_scope(desk.tenant):
        return list(WorkItem.objects.exclude(type="goal").values_list("subject", flat=True))


def test_plan_of_a_verified_visitor_is_theirs(desk: Desk) -> None:
    propose(desk, note())
    assert promised(desk) == ["C-1"]


def test_plan_of_a_visitor_whose_level_ended_during_the_turn_is_refused(desk: Desk) -> None:
    assert propose(desk, note(), seconds_left=-1) == ["I can't do this: that isn't something I can do here"]


def test_plan_of_a_visitor_whose_level_ended_during_the_turn_leaves_no_work(desk: Desk) -> None:
    propose(desk, note(), seconds_left=-1)
    assert promised(desk) == []


@pytest.mark.parametrize(
    "call",
    [
        PlannedCall("act", {"order": "H-1", "note": "4111 1111 1111 1111"}),
        PlannedCall("act", {"order": "H-1", "note": 1, "4111 1111 1111 1111": 1}),
        PlannedCall("4111 1111 1111 1111", {}),
    ],
)
def test_refusal_repeats_nothing_that_the_model_wrote(desk: Desk, call: PlannedCall) -> None:
    """It is said after the response gates, so it holds the house's own words only."""
    assert "4111" not in " ".join(propose(desk, call))


def test_refusal_names_the_argument_that_does_not_fit(desk: Desk) -> None:
    assert propose(desk, PlannedCall("act", {"order": "H-1"})) == [
        "I can't do this: something is missing or incorrect (note)"
    ]


def abort(desk: Desk, session: ChatSession, customer: str) -> None:
    """A later turn of the conversation, in which its model calls off what the visitor waits for."""
    say(session, "Leave it, please")
    with tenant_scope(desk.tenant):
        state = turn.open_turn(session.pk, consumer="test")
        assert state is not None
        grant = Grant("verified", now() + timedelta(seconds=900), {"identity": None}, customer)
        state.access = AccessController(state.policy.levels, grant)
        _take_in(state, PlanAction(action="abort"))


@pytest.mark.parametrize(("customer", "status"), [("C-1", "failed"), ("C-2", "pending")])
def test_visitor_who_no_longer_wants_it_calls_off_their_own_only(desk: Desk, customer: str, status: str) -> None:
    session = make_session(desk.deployment)
    item = desk.propose(session_id=session.pk).work_item_id
    assert item
    abort(desk, session, customer)
    assert desk.item(item).status == status


def test_visitor_who_waits_for_two_things_calls_off_neither(desk: Desk) -> None:
    session = make_session(desk.deployment)
    items = [desk.propose(note(value), session_id=session.pk).work_item_id for value in (30, 40)]
    abort(desk, session, "C-1")
    assert [desk.item(item).status for item in items if item] == ["pending", "pending"]


def test_visitor_calls_off_a_project_as_the_one_thing_it_is(desk: Desk) -> None:
    session = make_session(desk.deployment)
    item = desk.propose(session_id=session.pk, plan_markdown=PROJECT).work_item_id
    assert item
    abort(desk, session, "C-1")
    assert desk.item(item).reason == "cancelled"


def test_visitor_calls_off_what_they_asked_for_and_not_what_the_house_offers(
    tenant: Any, tmp_path: Path, approver: Any
) -> None:
    """An undo of theirs waits for staff, and a goal has found something about them: neither is the visitor's."""
    desk = undoable_desk(tenant, tmp_path)
    desk.approved(approver)
    carry_out(desk)
    route(desk, found(4))
    session = make_session(desk.deployment)
    item = desk.propose(note(60), session_id=session.pk).work_item_id
    assert item
    abort(desk, session, "C-1")
    with tenant_scope(tenant):
        left = set(WorkItem.objects.filter(status="pending").values_list("requested_by", flat=True))
    assert desk.item(item).reason == "cancelled"
    assert left == {"system", f"goal:{desk.goal_id}"}


def closing(desk: Desk, session: ChatSession, action: PlanAction) -> Callable[[], None]:
    """The closing of a turn whose model has answered with this."""
    say(session, "Please")
    with tenant_scope(desk.tenant):
        state = turn.open_turn(session.pk, consumer="test")
    assert state is not None
    grant = Grant("verified", now() + timedelta(seconds=900), {"identity": None}, "C-1")
    state.access = AccessController(state.policy.levels, grant)
    state.response = AgentResponse(message="Well.", plan_action=action)

    def close() -> None:
        with tenant_scope(desk.tenant):
            turn.close_turn(state)

    return close


def test_turn_that_calls_off_what_ends_at_this_moment_is_recorded(desk: Desk, approver: Any) -> None:
    session = make_session(desk.deployment)
    item_id = desk.propose(session_id=session.pk).work_item_id
    assert item_id
    desk.decide(desk.item(item_id), approver)
    close = closing(desk, session, PlanAction(action="abort"))

    def ends(meet: Callable[[], None]) -> None:
        with tenant_scope(desk.tenant):
            item = lock_item(item_id)
            meet()
            cancellation.end_if_open(item)

    outcomes = interrupted(ends, close)
    with tenant_scope(desk.tenant):
        said = ChronicleEntry.objects.filter(session_id=session.pk, sender="bot").count()
    assert outcomes == [None, None]
    assert said == 1


def test_turn_that_proposes_beside_another_plan_for_the_same_customer_is_recorded(desk: Desk) -> None:
    session = make_session(desk.deployment)
    close = closing(desk, session, PlanAction(action="propose", plan_markdown=plan(note())))

    def replans(meet: Callable[[], None]) -> None:
        with tenant_scope(desk.tenant):
            lock_customer("C-1")
            meet()
            lock_session(session.pk)

    assert interrupted(replans, close) == [None, None]
    assert promised(desk) == ["C-1"]


def go_on(desk: Desk, named: str) -> list[str]:
    """What a turn says when its model goes on with the work of this name."""
    session = make_session(desk.deployment)
    say(session, "And now the other one")
    with tenant_scope(desk.tenant):
        state = turn.open_turn(session.pk, consumer="test")
        assert state is not None
        grant = Grant("verified", now() + timedelta(seconds=900), {"identity": None}, "C-1")
        state.access = AccessController(state.policy.levels, grant)
        _take_in(state, PlanAction(action="propose", plan_markdown=plan(note(41)), continuation_of=named))
    with tenant_scope(desk.tenant):
        return [str(item.follow_up_of_id) for item in WorkItem.objects.filter(status="pending")]


def test_plan_that_goes_on_with_finished_work_is_linked_to_it(desk: Desk, approver: Any) -> None:
    done = desk.approved(approver)
    desk.work()
    assert go_on(desk, str(done.pk)) == [str(done.pk)]


@pytest.mark.parametrize("named", ["nothing of the kind", "00000000-0000-0000-0000-000000000001", "task-x"])
def test_plan_that_goes_on_with_what_is_not_there_is_refused(desk: Desk, named: str) -> None:
    assert go_on(desk, named) == []


def _kept(desk: Desk) -> str:
    with tenant_scope(desk.tenant):
        return " ".join(MemoryItem.objects.values_list("content", flat=True))


async def test_promise_of_a_plan_that_is_refused_is_neither_said_nor_remembered(desk: Desk) -> None:
    session = await in_thread(make_session, desk.deployment)
    await in_thread(say, session, "Please note it")
    state = await in_scope(session.tenant_id, turn.open_turn, session.pk, consumer="test")
    assert state is not None
    action = PlanAction(action="propose", plan_markdown=plan(note()))
    await before_the_end(state, message=PROMISE, plan_action=action)
    await in_scope(session.tenant_id, turn.close_turn, state)
    assert await in_thread(_bot_said, session) == ["I can't do this: that isn't something I can do here"]
    assert PROMISE not in await in_thread(_kept, desk)


def _bot_said(session: ChatSession) -> list[str]:
    with tenant_scope(session.tenant_id):
        return list(ChronicleEntry.objects.filter(session_id=session.pk, sender="bot").values_list("text", flat=True))


def test_promise_of_a_plan_that_is_taken_in_is_said(desk: Desk) -> None:
    assert propose(desk, note()) == [PROMISE]
