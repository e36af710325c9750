"""One warning a session when most of one of its limits is used (contract autonomy B3, C)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.db.models.functions import Now

from apps.autonomy import signals
from apps.autonomy.enums import TaskEvent
from apps.autonomy.models import AutonomousSession
from apps.autonomy.services import session_control
from apps.autonomy.services.limit_warnings import warn_if_near_limit
from apps.guard.models import GuardedRun
from kernel.tenancy import tenant_scope
from tests.autonomy.test_brakes import begin_session
from tests.factories.autonomy import RETURNS, House, make_house
from tests.rivals import race

Heard = list[tuple[Any, Mapping[str, Any]]]


@pytest.fixture
def heard() -> Iterator[Heard]:
    """Every warning, as a room above receives it."""
    found: Heard = []

    def listen(session: AutonomousSession, event: TaskEvent, data: Mapping[str, Any]) -> None:
        if event is TaskEvent.BUDGET_WARNING:
            found.append((session.pk, data))

    signals.task_event.connect(listen)
    yield found
    signals.task_event.disconnect(listen)


def set_usage(house: House, session: Any, **fields: Any) -> Any:
    """Set what the session's run has used."""
    with tenant_scope(house.tenant):
        GuardedRun.objects.filter(pk=session.run_id).update(**fields)
    return session


@pytest.mark.parametrize(
    ("fields", "name"),
    [
        ({"cost_total": "0.3", "cost_reserved": "0.1"}, "cost_usd"),
        ({"calls": 20}, "calls"),
        ({"input_tokens": 30_000, "output_tokens": 10_000}, "tokens"),
        ({"started_at": Now() - timedelta(seconds=241)}, "wall_seconds"),
    ],
)
def test_contract_warning_at_four_fifths_of_a_limit(house: House, heard: Heard, fields: Any, name: str) -> None:
    session = set_usage(house, begin_session(house)[0], **fields)
    house.do(warn_if_near_limit, session.pk)
    ((told, data),) = heard
    assert told == session.pk
    assert data["threshold_pct"] == 80
    assert list(data["used"]) == [name]


@pytest.mark.parametrize(
    "fields", [{"cost_total": "0.399999999"}, {"calls": 19}, {"input_tokens": 39_999}], ids=["cost", "calls", "tokens"]
)
def test_nobody_is_warned_below_four_fifths(house: House, heard: Heard, fields: Any) -> None:
    house.do(warn_if_near_limit, set_usage(house, begin_session(house)[0], **fields).pk)
    assert heard == []


def test_session_is_warned_of_once_whatever_it_uses(house: House, heard: Heard) -> None:
    session = set_usage(house, begin_session(house)[0], calls=20)
    for calls in (20, 24, 25):
        house.do(warn_if_near_limit, set_usage(house, session, calls=calls, input_tokens=50_000).pk)
    assert len(heard) == 1


def test_of_rivals_one_warns(house: House, heard: Heard) -> None:
    session = set_usage(house, begin_session(house)[0], calls=20)
    race(*[lambda: house.do(warn_if_near_limit, session.pk)] * 4)
    assert len(heard) == 1


def test_session_under_way_is_warned_by_its_own_calls(house: House, heard: Heard) -> None:
    session = house.through(house.task(limits={"calls": 3}))
    assert [told for told, _ in heard] == [session.pk]


def test_writes_to_memory_near_their_limit_are_warned_of(house: House, heard: Heard, tmp_path: Path) -> None:
    house.know(tmp_path, returns=RETURNS)
    for word in ("parrots", "dragons"):
        house.ask(f"Do you sell gift wrapping for {word}?")
    house.through(house.task(playbook="unanswered", limits={"memory_writes": 2, "calls": 100}))
    assert [list(data["used"]) for _, data in heard] == [["memory_writes"]]


def test_limit_of_zero_is_reached_and_never_near(house: House, heard: Heard) -> None:
    house.through(house.task(limits={"cost_usd": 0, "memory_writes": 0}))
    assert heard == []


def test_watch_warns_of_a_session_that_waits_for_a_long_call(house: House, heard: Heard) -> None:
    session = set_usage(house, begin_session(house)[0], started_at=Now() - timedelta(seconds=241))
    house.do(session_control.check_session, session.pk)
    assert [told for told, _ in heard] == [session.pk]


def test_session_of_another_company_is_not_warned_of(house: House, other_tenant: Any, heard: Heard) -> None:
    theirs = make_house(other_tenant)
    session = set_usage(theirs, begin_session(theirs)[0], calls=20)
    house.do(warn_if_near_limit, session.pk)
    assert heard == []
