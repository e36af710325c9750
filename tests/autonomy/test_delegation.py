"""Delegation: what delegated sessions may spend, reach and outlive, and what is collected (contract autonomy C)."""

from __future__ import annotations

import random
from datetime import timedelta
from decimal import Decimal
from typing import Any
from uuid import uuid4

import pytest
from django.db.models.functions import Now

from apps.autonomy import queries, rules
from apps.autonomy.enums import SessionStatus, TriggerKind
from apps.autonomy.locks import lock_session
from apps.autonomy.models import AutonomousSession
from apps.autonomy.schemas import DelegatedQuestion, TaskLimits
from apps.autonomy.services import delegation, session_control, session_end
from apps.autonomy.services.session_end import LOST, Ending
from apps.autonomy.services.session_run import _open_run
from apps.guard import services as guard
from apps.guard.enums import Intent, Phase, TerminalReason
from apps.guard.models import GuardedRun
from apps.guard.schemas import Admitted, Call, Refused, RunRef
from kernel.errors import NotFound, SilasError
from kernel.tenancy import tenant_scope
from tests.factories.autonomy import House, make_house
from tests.rivals import race

MONEY = Decimal("0.4")


def make_parent_task(house: House, many: int = 3, **fields: Any) -> Any:
    """A task that may delegate to `many` others."""
    others = [house.task(name=f"other {place}") for place in range(many)]
    return house.task(name="asking", delegates_to=[each.pk for each in others], **fields)


def delegate_rest(house: House, *, spent: str = "0.1", **fields: Any) -> tuple[Any, list[Any]]:
    """A session that has spent something and delegates the rest, with its children."""
    task = make_parent_task(house, **{"limits": {"cost_usd": "0.5", "calls": 25}, **fields})
    house.run_now(task)
    session, _ = start_session(house, task)
    with tenant_scope(house.tenant):
        GuardedRun.objects.filter(pk=session.run_id).update(cost_total=Decimal(spent), calls=5)
        delegation.delegate(session.pk, [DelegatedQuestion(task=each, question="why?") for each in task.delegates_to])
    return house.session(session.pk), house.sessions(trigger_kind=TriggerKind.DELEGATED)


def start_session(house: House, task: Any) -> tuple[Any, Any]:
    """The task's session, started as a worker starts it."""
    (session,) = house.sessions(task=task)
    begin_session(house, session)
    return house.session(session.pk), task


def begin_session(house: House, session: Any) -> Any:
    with tenant_scope(house.tenant):
        row = lock_session(session.pk)
        _open_run(row)
        AutonomousSession.objects.filter(pk=row.pk).update(
            run=row.run, status=SessionStatus.RUNNING, admitted_at=Now(), started_at=Now(), heartbeat_at=Now()
        )
        return row.run


def end_session(house: House, session: Any, how: Ending | None = None, **used: Any) -> Any:
    """End the session after it has used this much."""
    if session.run_id is None and house.session(session.pk).run_id is None:
        begin_session(house, session)
    with tenant_scope(house.tenant):
        row = lock_session(session.pk)
        GuardedRun.objects.filter(pk=row.run_id).update(**used)
        session_end.end(
            row, how or Ending(SessionStatus.COMPLETED, TerminalReason.COMPLETED, output=f"said by {row.pk}")
        )
    return house.session(session.pk)


def collecting_sessions(house: House) -> list[Any]:
    house.do(delegation.start_collecting_sessions)
    return house.sessions(params__has_key="collects")


def make_paid_call(house: House, run: Any, amount: Decimal) -> Admitted | Refused:
    """Make a call under the run, reserved and charged."""
    call = Call(tool="look", access=frozenset({"look"}), estimate=amount)
    with tenant_scope(house.tenant):
        admitted = guard.admit(RunRef(house.tenant.pk, run.pk), Intent.PLAN, call)
    if isinstance(admitted, Admitted):
        with tenant_scope(house.tenant):
            guard.settle(admitted, cost=amount)
    return admitted


# What they may spend


@pytest.mark.parametrize(("left", "parts"), [("0.4", 4), ("0.000000001", 3), ("0", 2), ("1", 3)])
def test_parts_are_never_more_than_the_whole(left: str, parts: int) -> None:
    share, pool = rules.divide_limits(TaskLimits(cost_usd=Decimal(left), calls=10, tokens=7), parts)
    assert share.cost_usd is not None
    assert share.cost_usd * parts <= Decimal(left)
    assert pool.cost_usd == share.cost_usd * parts
    assert pool.calls == 10 // parts * parts
    assert pool.tokens == 7 // parts * parts


def test_contract_children_share_what_their_parent_has_left(house: House) -> None:
    _, children = delegate_rest(house)
    assert [(each.frozen_limits.cost_usd, each.frozen_limits.calls) for each in children] == [(Decimal("0.1"), 5)] * 3


def test_childs_own_limit_holds_where_it_is_smaller(house: House) -> None:
    small = house.task(name="small", limits={"cost_usd": "0.01"})
    task = house.task(name="asking", delegates_to=[small.pk])
    house.run_now(task)
    session, _ = start_session(house, task)
    house.do(delegation.delegate, session.pk, [DelegatedQuestion(task=small.pk)])
    assert house.sessions(task=small)[0].frozen_limits.cost_usd == Decimal("0.01")


def test_contract_rivals_with_random_prices_spend_no_more_than_their_parent_had(house: House) -> None:
    chance = random.Random(5)
    parent, children = delegate_rest(house)
    runs = [begin_session(house, each) for each in children]
    with tenant_scope(house.tenant):
        GuardedRun.objects.filter(pk__in=[run.pk for run in runs]).update(phase=Phase.ANALYSIS)
    prices = [[Decimal(chance.randrange(1, 40_000_000)).scaleb(-9) for _ in range(4)] for _ in runs]
    race(
        *[
            lambda run=run, each=each: [make_paid_call(house, run, price) for price in each]
            for run, each in zip(runs, prices, strict=True)
        ]
    )
    for each in (parent, *children):
        end_session(house, each)
    (last,) = collecting_sessions(house)
    with tenant_scope(house.tenant):
        spent = [queries.usage_of(each).cost_usd for each in (queries.session(row.pk) for row in (parent, *children))]
    assert sum(spent) + last.frozen_limits.cost_usd == Decimal("0.5")
    assert max(spent[1:]) > 0


def test_parent_that_divided_has_nothing_left_to_pass_on(house: House) -> None:
    parent, _ = delegate_rest(house)
    left = house.do(lambda: queries.budget_left(queries.session(parent.pk)))
    assert left.cost_usd == Decimal(0)
    assert left.calls == 0


def test_what_a_child_did_not_spend_comes_back_once(house: House) -> None:
    parent, children = delegate_rest(house)
    end_session(house, parent)
    for each in children:
        end_session(house, each, cost_total=Decimal("0.03"), calls=2)
    (session,) = collecting_sessions(house)
    assert session.frozen_limits.cost_usd == Decimal("0.31")
    assert session.frozen_limits.calls == 14


def test_rivals_begin_the_session_that_collects_once(house: House) -> None:
    parent, children = delegate_rest(house)
    for each in (parent, *children):
        end_session(house, each)
    race(*[lambda: house.do(delegation.start_collecting_sessions)] * 4)
    assert len(collecting_sessions(house)) == 1


def test_nothing_is_collected_while_one_is_under_way(house: House) -> None:
    parent, children = delegate_rest(house)
    for each in (parent, *children[:2]):
        end_session(house, each)
    assert collecting_sessions(house) == []


def test_lost_child_is_tried_again_inside_its_share(house: House) -> None:
    parent, children = delegate_rest(house)
    end_session(house, parent)
    end_session(house, children[0], LOST, cost_total=Decimal("0.07"), calls=4)
    again = house.sessions(attempt=2)[0]
    assert again.frozen_limits.cost_usd == Decimal("0.03")
    assert again.frozen_limits.calls == 1


def test_lost_attempts_of_a_child_do_not_come_back(house: House) -> None:
    parent, children = delegate_rest(house)
    end_session(house, parent)
    end_session(house, children[0], LOST, cost_total=Decimal("0.07"))
    for each in (*children[1:], *house.sessions(attempt=2)):
        end_session(house, each)
    assert collecting_sessions(house)[0].frozen_limits.cost_usd == Decimal("0.33")


def test_what_was_divided_is_not_divided_twice(house: House) -> None:
    parent, children = delegate_rest(house)
    assert house.do(delegation.delegate, parent.pk, [DelegatedQuestion(task=each) for each in parent.task.delegates_to])
    assert len(house.sessions(trigger_kind=TriggerKind.DELEGATED)) == len(children)


def test_parent_that_is_lost_after_dividing_is_not_begun_again_and_its_results_are_collected(house: House) -> None:
    parent, children = delegate_rest(house, max_attempts=1)
    for each in (parent, *children):
        end_session(house, each, LOST if each is parent else None)
    assert house.sessions(attempt=2) == []
    assert len(collecting_sessions(house)) == 1
    assert house.do(queries.task, parent.task_id).quarantined_at is None


# What they may reach, and outlive


def test_contract_child_reaches_no_more_than_its_parent(house: House) -> None:
    other = house.task(name="other", tool_allow=["knowledge_search", "web_search"], tool_deny=["notice"])
    granted = ["knowledge_search", "new_documents"]
    task = house.task(name="asking", delegates_to=[other.pk], tool_allow=granted, tool_deny=["goal_state"])
    house.run_now(task)
    session, _ = start_session(house, task)
    house.do(delegation.delegate, session.pk, [DelegatedQuestion(task=other.pk)])
    run = begin_session(house, house.sessions(task=other)[0])
    assert "knowledge_search" in run.allow
    assert "web_search" not in run.allow
    assert run.deny == ["goal_state", "notice"]


def test_child_of_a_parent_without_a_list_reaches_only_what_its_skills_bring(house: House) -> None:
    _, children = delegate_rest(house)
    run = begin_session(house, children[0])
    assert run.allow is not None
    assert "knowledge_search" in run.allow


def test_contract_child_outlives_no_parent(house: House) -> None:
    parent, children = delegate_rest(house, limits={"wall_seconds": 100})
    soon = house.session(parent.pk).run.started_at + timedelta(seconds=-50)
    house.change(children[0], params={**children[0].params, "deadline": soon.isoformat()})
    run = begin_session(house, children[0])
    assert run.frozen_limits.wall_seconds == 0
    assert begin_session(house, children[1]).frozen_limits.wall_seconds <= 100


def test_halting_the_parent_halts_its_children_and_collects_nothing(house: House) -> None:
    parent, children = delegate_rest(house)
    begin_session(house, children[0])
    end_session(house, parent)
    assert house.do(session_control.halt_session, parent.pk, user=house.owner)
    end_session(house, children[0], Ending(SessionStatus.HALTED, TerminalReason.EXTERNAL_HALT))
    states = [house.session(each.pk).status for each in children]
    assert states == ["halted", "cancelled", "cancelled"]
    assert collecting_sessions(house) == []


def test_halting_a_parent_that_still_runs_halts_its_children(house: House) -> None:
    parent, children = delegate_rest(house)
    house.do(session_control.halt_session, parent.pk, user=house.owner)
    assert {house.session(each.pk).status for each in children} == {"cancelled"}


def test_parent_that_was_halted_divides_nothing(house: House) -> None:
    task = make_parent_task(house, 1)
    house.run_now(task)
    session, _ = start_session(house, task)
    house.do(session_control.halt_session, session.pk, user=house.owner)
    assert not house.do(delegation.delegate, session.pk, [DelegatedQuestion(task=task.delegates_to[0])])


# Who may be asked


def test_task_that_is_not_on_the_list_is_not_asked(house: House) -> None:
    stranger, task = house.task(name="stranger"), make_parent_task(house, 1)
    house.run_now(task)
    session, _ = start_session(house, task)
    assert not house.do(
        delegation.delegate, session.pk, [DelegatedQuestion(task=stranger.pk), DelegatedQuestion(task=uuid4())]
    )


def test_child_asks_nobody(house: House) -> None:
    _, children = delegate_rest(house)
    begin_session(house, children[0])
    house.change(children[0].task, delegates_to=[str(children[1].task_id)])
    assert not house.do(delegation.delegate, children[0].pk, [DelegatedQuestion(task=children[1].task_id)])


@pytest.mark.parametrize("fields", [{"playbook": "unanswered"}, {"delegates": True}, {"escalates": True}])
def test_list_with_a_task_that_cannot_be_asked_is_refused(house: House, fields: dict[str, Any]) -> None:
    third = house.task(name="third")
    more = {"delegates": {"delegates_to": [third.pk]}, "escalates": {"escalates_to_id": third.pk}}
    said = more.get(next(iter(fields)), fields)
    other = house.task(name="other", **said)
    with pytest.raises(SilasError) as refused:
        house.task(name="asking", delegates_to=[other.pk])
    assert refused.value.code == "task_delegates"


def test_task_of_another_company_cannot_be_on_the_list(house: House, other_tenant: Any) -> None:
    theirs = make_house(other_tenant).task()
    with pytest.raises(NotFound):
        house.task(delegates_to=[theirs.pk])


def test_list_stays_when_nobody_speaks_of_it(house: House) -> None:
    task = make_parent_task(house, 2)
    house.task(task_id=task.pk, name="asking", prompt="Else?")
    assert house.do(queries.task, task.pk).delegates_to == task.delegates_to
