"""Is a plan taken in with what the visitor may do at that moment, and told in words that a gate need not see?"""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from apps.sessions import proposals, turn
from apps.sessions.access import AccessController, Grant
from apps.sessions.locks import lock_session
from apps.sessions.models import ChronicleEntry
from apps.sessions.state import TurnState
from apps.work.models import WorkItem
from kernel.clock import now
from kernel.llm.calls import PlannedCall
from kernel.llm.schemas import PlanAction
from kernel.tenancy import tenant_scope
from tests.factories.sessions import make_session, say
from tests.factories.work import Desk, make_desk, note, plan


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
        grant = Grant("verified", now() + timedelta(seconds=seconds_left), frozenset({"identity"}), customer)
        state.access = AccessController(state.policy.levels, grant)
        _take_in(state, PlanAction(action="propose", plan_markdown=plan(*calls)))
    with tenant_scope(desk.tenant):
        said = ChronicleEntry.objects.filter(session_id=session.pk, sender="bot").values_list("text", flat=True)
        return list(said)


def _take_in(state: TurnState, action: PlanAction) -> None:
    deployment, state.session = state.session.deployment, lock_session(state.session.pk)
    state.session.deployment = deployment
    proposals.propose(state, action)


def promised(desk: Desk) -> list[str]:
    with tenant_scope(desk.tenant):
        return list(WorkItem.objects.exclude(type="goal").values_list("subject", flat=True))


def test_plan_of_a_verified_visitor_is_theirs(desk: Desk) -> None:
    propose(desk, note())
    assert promised(desk) == ["C-1"]


def test_plan_of_a_visitor_whose_level_ended_during_the_turn_is_refused(desk: Desk) -> None:
    assert propose(desk, note(), seconds_left=-1) == ["I cannot do this: that is not something I can do here"]


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
        "I cannot do this: something is missing or not right (note)"
    ]
