"""Every bad end notifies the task's owner once, with a button; a session continues when its limit is raised."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from django.urls import reverse

from apps.approvals.enums import CardKind
from apps.approvals.models import ApprovalToken, Card, TokenUse
from apps.autonomy import services
from apps.autonomy.enums import SessionStatus, TriggerKind
from apps.autonomy.models import AutonomousSession, Notification, Trigger
from apps.autonomy.services import admission, limit_increases, trigger_dispatch
from apps.bus import services as bus
from apps.bus.enums import Queue
from apps.guard.models import SystemControl
from kernel.tenancy import tenant_scope
from tests.autonomy.test_lost_workers import lose_worker
from tests.autonomy.test_models import CLOSE, DONE, MODEL, SEARCH
from tests.factories.autonomy import House
from tests.factories.console import browser
from tests.factories.proposals import press
from tests.factories.tenants import make_member
from tests.rivals import race
from tests.work.drained import drain_as_a_worker


def notice_reasons(house: House) -> list[str]:
    with tenant_scope(house.tenant):
        return list(Notification.objects.order_by("created_at").values_list("reason", flat=True))


def stop_at_limit(house: House, **limits: Any) -> Any:
    return house.through(house.task(limits=limits, route={"kind": "notify"}))


def open_increase_card(house: House) -> Card:
    """The card that a trusted worker opens."""
    house.work(Queue.TRUSTED)
    with tenant_scope(house.tenant):
        return Card.objects.get(kind=CardKind.BUDGET)


@pytest.mark.parametrize(
    ("limits", "reason"),
    [
        ({"calls": 2}, "budget_tool_calls"),
        ({"tokens": 0}, "budget_tokens"),
        ({"wall_seconds": 0}, "budget_wall_clock"),
    ],
)
def test_budget_stop_tells_the_owner_once(house: House, limits: Any, reason: str) -> None:
    stop_at_limit(house, **limits)
    house.finish()
    assert notice_reasons(house) == [reason]


def test_lost_worker_tells_the_owner(house: House) -> None:
    lose_worker(house, house.task())
    assert notice_reasons(house) == ["worker_lost"]


def test_task_that_was_set_aside_tells_the_owner_once(house: House) -> None:
    lose_worker(house, house.task(max_attempts=1))
    assert notice_reasons(house) == ["set_aside"]


def test_attempt_that_succeeds_takes_the_place_of_what_was_told(house: House) -> None:
    session = lose_worker(house, house.task(route={"kind": "notify"}))
    with tenant_scope(house.tenant):
        AutonomousSession.objects.filter(ended_at=None).update(not_before=session.queued_at)
        bus.revoke(session.message_id)
    house.finish()
    assert notice_reasons(house) == [""]


def test_failed_session_tells_the_owner_once(house: House) -> None:
    house.through(house.task(tool_deny=["knowledge_search"], route={"kind": "notify"}))
    assert notice_reasons(house) == ["tool_not_granted"]


def test_session_that_a_person_called_off_before_it_began_tells_nothing(house: House) -> None:
    session = house.run_now(house.task())
    house.do(services.halt_session, session.pk, user=house.owner)
    assert notice_reasons(house) == []


def test_trigger_that_switched_itself_off_tells_the_owner_once(house: House) -> None:
    trigger = house.trigger(house.task(), TriggerKind.INTERVAL, due=True, seconds=3600)
    house.change(trigger, spec={"seconds": "often"})
    house.dispatch(trigger)
    fresh = house.do(lambda: Trigger.objects.select_related("task").get(pk=trigger.pk))
    house.do(trigger_dispatch.disable_trigger, fresh, reason="again")
    assert notice_reasons(house) == ["trigger_spec"]


def test_run_now_at_a_reached_limit_tells_that_it_waits(house: House) -> None:
    with tenant_scope(house.tenant):
        SystemControl.objects.create(pause="pause_all")
    house.run_now(house.task())
    assert notice_reasons(house) == ["waits_for_limit"]


def test_success_tells_no_reason(house: House) -> None:
    house.through(house.task(route={"kind": "notify"}))
    assert notice_reasons(house) == [""]


def test_card_says_what_is_spent_the_limit_the_new_one_and_what_remains(house: House) -> None:
    stop_at_limit(house, calls=2)
    card = open_increase_card(house)
    assert card.payload["before"] == {"limit_calls": "2", "spent_calls": "2", "remaining_calls": "0"}
    assert card.payload["after"] == {"limit_calls": "4", "spent_calls": "2", "remaining_calls": "2"}
    assert card.consequence["approve"] == "Raise the limit and continue"


def test_notice_leads_to_the_card(house: House) -> None:
    stop_at_limit(house, calls=2)
    card = open_increase_card(house)
    client = browser(house.owner)
    page = client.get(reverse("console-notices")).content.decode()
    with tenant_scope(house.tenant):
        notice = Notification.objects.get()
    answer = client.post(reverse("console-notice-read", args=[notice.pk]))
    assert "Raise the limit and continue" in page
    assert "Stopped: call limit reached" in page
    assert answer.headers["Location"] == reverse("console-card", args=[card.pk])


def test_notice_of_a_trigger_leads_to_its_task(house: House) -> None:
    trigger = house.trigger(house.task(), TriggerKind.INTERVAL, due=True, seconds=3600)
    house.change(trigger, spec={"seconds": "often"})
    house.dispatch(trigger)
    client = browser(house.owner)
    page = client.get(reverse("console-notices")).content.decode()
    with tenant_scope(house.tenant):
        notice = Notification.objects.get()
    answer = client.post(reverse("console-notice-read", args=[notice.pk]))
    assert "A trigger was turned off" in page
    assert answer.headers["Location"] == reverse("console-task", args=[trigger.task_id])


def test_raised_limit_continues_the_session_and_is_spent_once(house: House) -> None:
    session = stop_at_limit(house, calls=2)
    card = open_increase_card(house)
    press(house.tenant, card.subject_id, make_member(house.tenant, "approver"), "approve")
    with tenant_scope(house.tenant):
        token = ApprovalToken.objects.get()
        assert token.scope == "budget"
        assert token.work_item_id == str(session.pk)
        assert TokenUse.objects.filter(token_nonce=token.nonce).count() == 1
    first, second = house.sessions()
    assert second.root_id == first.pk
    assert second.frozen_limits.calls == 2


def test_declined_card_leaves_the_session_stopped(house: House) -> None:
    stop_at_limit(house, calls=2)
    card = open_increase_card(house)
    press(house.tenant, card.subject_id, make_member(house.tenant, "approver"), "decline")
    assert len(house.sessions()) == 1


def test_approval_is_bound_to_its_session_and_its_new_limit(house: House) -> None:
    session = stop_at_limit(house, calls=2)
    card = open_increase_card(house)
    house.change(session, limits={**session.limits, "calls": 3})
    press(house.tenant, card.subject_id, make_member(house.tenant, "approver"), "approve")
    assert len(house.sessions()) == 1


def test_rivals_that_decide_the_same_card_continue_the_session_once(house: House) -> None:
    stop_at_limit(house, calls=2)
    card = open_increase_card(house)
    people = [make_member(house.tenant, "approver") for _ in range(3)]
    race(*[lambda who=who: press(house.tenant, card.subject_id, who, "approve") for who in people])
    assert len(house.sessions()) == 2


def test_company_that_allows_no_more_is_asked_nothing(house: House) -> None:
    house.do(services.put_settings, actor="system", limits={"calls": 2})
    session = stop_at_limit(house, calls=2)
    assert house.do(limit_increases.open_increase_card, session.pk) is None


def test_task_that_may_not_begin_any_more_is_not_continued(house: House) -> None:
    stop_at_limit(house, calls=2)
    card = open_increase_card(house)
    house.do(services.put_settings, actor="system", enabled=False)
    press(house.tenant, card.subject_id, make_member(house.tenant, "approver"), "approve")
    assert len(house.sessions()) == 1


def test_continued_session_pays_for_nothing_that_was_done(modelled: House, provider: Any) -> None:
    """Stopped in the middle of its analysis: its notes are kept, and it continues with the next step."""
    with provider(SEARCH, SEARCH, DONE, CLOSE) as fake:
        session = modelled.through(modelled.task(model_name=MODEL, limits={"calls": 4}))
        asked_before = len(fake.requests)
        card = open_increase_card(modelled)
        press(modelled.tenant, card.subject_id, make_member(modelled.tenant, "approver"), "approve")
        with tenant_scope(modelled.tenant):
            AutonomousSession.objects.filter(ended_at=None).update(limits={"calls": 40, "cost_usd": "0.5"})
        modelled.finish()
        asked_after = [str(request["messages"]) for request in fake.requests[asked_before:]]
    first, second = modelled.sessions()
    receipt = modelled.receipt(second)
    assert first.pk == session.pk
    assert first.terminal_reason == "budget_tool_calls"
    assert second.status == SessionStatus.COMPLETED
    assert second.output == "Coats: 30 days."
    assert "30 days of delivery" in asked_after[0]
    assert [call["intent"] for call in receipt["tool_calls"]].count("retrieve_chunks") < 2
    assert receipt["plan_trace"]["steps"] >= 1


def test_money_that_was_spent_counts_for_the_continued_session(modelled: House, provider: Any) -> None:
    with provider(SEARCH, SEARCH, DONE, CLOSE):
        session = modelled.through(modelled.task(model_name=MODEL, limits={"calls": 4, "cost_usd": "0.5"}))
        card = open_increase_card(modelled)
        press(modelled.tenant, card.subject_id, make_member(modelled.tenant, "approver"), "approve")
    _, second = modelled.sessions()
    spent = modelled.session(session.pk).run.cost_total
    assert spent > 0
    assert second.frozen_limits.cost_usd == Decimal("0.5") - spent


def test_worker_tells_with_its_own_rights_what_ended_otherwise_than_well(house: House) -> None:
    house.run_now(house.task(limits={"calls": 2}))
    house.do(admission.admit_waiting)
    drain_as_a_worker(house.tenant)
    assert notice_reasons(house) == ["budget_tool_calls"]
    assert open_increase_card(house).payload["after"]["limit_calls"] == "4"
