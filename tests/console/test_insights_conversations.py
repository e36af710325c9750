"""Insights about conversations, of the chosen period and chatbot only."""

from __future__ import annotations

import csv
import io
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.urls import reverse

from apps.audit.enums import AuditEvent
from apps.audit.services import record
from apps.console.pages.insights.period import period_from
from apps.console.pages.insights.presenter import reason_in_words
from apps.inbox import handoff
from apps.sessions import insights, person_wanted
from apps.sessions.enums import EntryKind, Sender
from apps.sessions.insights import Asked
from apps.sessions.locks import lock_session
from apps.sessions.models import ChatSession, ChronicleEntry, Turn
from apps.visitors.enums import RatingScale
from apps.visitors.models import Rating
from apps.visitors.ratings import rating_figures
from kernel.clock import now
from kernel.tenancy import tenant_scope
from tests.factories.console import browser
from tests.factories.sessions import make_session, say
from tests.factories.tenants import make_deployment, make_member

MOMENT = datetime(2026, 11, 20, 12, tzinfo=UTC)


def recently(**fields: Any) -> Asked:
    return Asked(**{"since": now() - timedelta(days=7), "until": now() + timedelta(minutes=1), "zone": "UTC", **fields})


def spoken(deployment: Any) -> ChatSession:
    session = make_session(deployment)
    say(session, "Where is my parcel?")
    return session


def turn(session: ChatSession, *, seconds: float = 2, **fields: Any) -> None:
    with tenant_scope(session.tenant_id):
        usual = {"message_seq": 1, "number": 1, "epoch": 0, "step": "closing", "status": "done"}
        moment = now()
        timed = {"started_at": moment - timedelta(seconds=seconds), "finished_at": moment}
        Turn.objects.create(session=session, **{**usual, **timed, **fields})


def want(session: ChatSession, because: str = "asked") -> None:
    with tenant_scope(session.tenant_id):
        person_wanted.want_person(lock_session(session.pk), because=because)


def answer(session: ChatSession, user: Any) -> None:
    with tenant_scope(session.tenant_id):
        handoff.take_over(session.pk, user)
        handoff.reply(session.pk, user, "I am here.")


def of(tenant: Any, figures: Any, **fields: Any) -> Any:
    with tenant_scope(tenant):
        return figures(recently(**fields))


def page(user: Any, **asked: str) -> str:
    return str(browser(user).get(reverse("console-insights"), asked).content.decode())


def test_conversation_that_nobody_wrote_in_is_none(tenant: Any, deployment: Any) -> None:
    make_session(deployment)
    spoken(deployment)
    assert sum(day.conversations for day in of(tenant, insights.by_day)) == 1


def test_conversation_is_counted_on_the_day_it_began(tenant: Any, deployment: Any) -> None:
    session = spoken(deployment)
    with tenant_scope(tenant):
        ChatSession.objects.filter(pk=session.pk).update(created_at=now() - timedelta(days=2))
    assert [day.conversations for day in of(tenant, insights.by_day)][-3:] == [1, 0, 0]


def test_person_in_a_conversation_is_counted_once(tenant: Any, deployment: Any, owner: Any) -> None:
    session = spoken(deployment)
    spoken(deployment)
    want(session)
    answer(session, owner)
    assert sum(day.with_person for day in of(tenant, insights.by_day)) == 1


def test_hand_off_says_why_and_whether_somebody_answered(tenant: Any, deployment: Any, owner: Any) -> None:
    answered, waiting, failed = (spoken(deployment) for _ in range(3))
    for session, because in ((answered, "asked"), (waiting, "asked"), (failed, "unanswered")):
        want(session, because)
    answer(answered, owner)
    found = of(tenant, insights.hand_offs)
    assert [(one.because, one.wanted, one.answered) for one in found] == [("asked", 2, 1), ("unanswered", 1, 0)]


def test_hand_off_says_how_long_until_a_person_answered(tenant: Any, deployment: Any, owner: Any) -> None:
    session = spoken(deployment)
    want(session)
    answer(session, owner)
    (found,) = of(tenant, insights.hand_offs)
    assert found.median is not None
    assert 0 <= found.median < 60


def test_conversation_that_wants_a_person_twice_counts_once(tenant: Any, deployment: Any) -> None:
    session = spoken(deployment)
    want(session)
    with tenant_scope(tenant):
        person_wanted.want_person(lock_session(session.pk), queue="billing")
    assert [one.wanted for one in of(tenant, insights.hand_offs)] == [1]


@pytest.mark.parametrize(
    ("fields", "which"),
    [
        ({}, "answered"),
        ({"status": "stopped", "reason": "gate:no_prices"}, "refused"),
        ({"status": "stopped", "reason": "taken_over"}, "suppressed"),
        ({"status": "stopped", "reason": "asked"}, "stopped"),
        ({"status": "failed", "reason": "process_lost"}, "failed"),
    ],
)
def test_turn_counts_for_how_it_ended(tenant: Any, deployment: Any, fields: dict[str, str], which: str) -> None:
    turn(spoken(deployment), **fields)
    found = of(tenant, insights.turns)
    ends = ("answered", "refused", "suppressed", "stopped", "failed")
    assert {name: getattr(found, name) for name in ends if getattr(found, name)} == {which: 1}


def test_time_to_answer_is_of_answers_only(tenant: Any, deployment: Any) -> None:
    session = spoken(deployment)
    for seconds in (1, 2, 3):
        turn(session, seconds=seconds)
    turn(session, seconds=500, status="failed")
    found = of(tenant, insights.turns)
    assert round(found.p50) == 2
    assert round(found.p95) == 3


def test_answer_with_sources_is_counted(tenant: Any, deployment: Any) -> None:
    session = spoken(deployment)
    turn(session)
    turn(session)
    with tenant_scope(tenant):
        ChronicleEntry.objects.create(
            session=session, seq=9, kind=EntryKind.MESSAGE, sender=Sender.BOT, text="Two days.",
            payload={"citations": [{"title": "Delivery"}]}, taint="auth", created_at=now(),
        )  # fmt: skip
    assert of(tenant, insights.turns).cited_share == 0.5


def test_gates_are_counted_by_what_they_did(tenant: Any) -> None:
    with tenant_scope(tenant):
        for event in (AuditEvent.GATE_BLOCKED, AuditEvent.GATE_BLOCKED, AuditEvent.GATE_ASKED):
            record(event, subject="session:x", data={"gate": "no_prices", "code": "c"})
        record(AuditEvent.GATE_MUTATION, subject="session:x", data={"gate": "names", "code": "c"})
    found = of(tenant, insights.gate_actions)
    assert [(one.gate, one.blocked, one.asked, one.rewrote) for one in found] == [
        ("no_prices", 2, 1, 0),
        ("names", 0, 0, 1),
    ]


def furnished(deployment: Any, user: Any) -> None:
    session = spoken(deployment)
    turn(session)
    want(session)
    answer(session, user)
    with tenant_scope(deployment.tenant_id):
        record(AuditEvent.GATE_BLOCKED, subject=f"session:{session.pk}", data={"gate": "g", "code": "c"})


ALL = (insights.by_day, insights.hand_offs, insights.turns, insights.gate_actions)


def counted(found: Any) -> int:
    """The number of counted items."""
    first = {"Day": "conversations", "HandOff": "wanted", "Turns": "total", "GateAction": "blocked"}
    return sum(getattr(one, first[type(one).__name__]) for one in (found if isinstance(found, list) else [found]))


@pytest.mark.parametrize("figures", ALL)
def test_another_tenants_are_not_counted(
    figures: Any, tenant: Any, other_tenant: Any, deployment: Any, owner: Any
) -> None:
    furnished(deployment, owner)
    assert counted(of(other_tenant, figures)) == 0


@pytest.mark.parametrize("figures", ALL)
def test_only_the_chatbot_asked_about_is_counted(figures: Any, tenant: Any, deployment: Any, owner: Any) -> None:
    furnished(deployment, owner)
    furnished(make_deployment(tenant), owner)
    assert counted(of(tenant, figures, deployment=deployment.pk)) == 1
    assert counted(of(tenant, figures)) == 2


@pytest.mark.parametrize("figures", ALL)
def test_what_was_before_is_not_counted(figures: Any, tenant: Any, deployment: Any, owner: Any) -> None:
    furnished(deployment, owner)
    assert counted(of(tenant, figures, since=now() - timedelta(days=9), until=now() - timedelta(days=2))) == 0


def test_page_says_why_people_were_wanted(tenant: Any, deployment: Any, owner: Any) -> None:
    furnished(deployment, owner)
    found = page(owner)
    assert "Requested by the visitor</th><td>1</td><td>1</td>" in found
    assert "Resolved by the bot" in found


def test_page_of_one_chatbot_leaves_the_others_out(tenant: Any, deployment: Any, owner: Any) -> None:
    furnished(deployment, owner)
    other = make_deployment(tenant)
    assert "No messages in this period" in page(owner, chatbot=str(other.pk))


def test_chatbot_of_another_tenant_is_none(other_tenant: Any, tenant: Any, deployment: Any, owner: Any) -> None:
    furnished(deployment, owner)
    foreign = make_deployment(other_tenant, title="Foreign desk")
    found = page(owner, chatbot=str(foreign.pk))
    assert "Foreign desk" not in found
    assert "No messages in this period" not in found


@pytest.mark.parametrize("count", [1, 4])
def test_page_costs_the_same_for_any_number_of_conversations(
    tenant: Any, deployment: Any, owner: Any, count: int, django_assert_num_queries: Any
) -> None:
    for _ in range(count):
        furnished(deployment, owner)
    client = browser(owner)
    with django_assert_num_queries(28):
        client.get(reverse("console-insights"))


def test_month_is_counted_once_a_minute(
    tenant: Any, deployment: Any, owner: Any, django_assert_num_queries: Any
) -> None:
    furnished(deployment, owner)
    page(owner, days="30")
    client = browser(owner)
    with django_assert_num_queries(22):
        client.get(reverse("console-insights"), {"days": "30"})


def test_month_of_another_tenant_is_not_what_was_kept(
    tenant: Any, other_tenant: Any, deployment: Any, owner: Any
) -> None:
    furnished(deployment, owner)
    page(owner, days="30")
    assert "No messages in this period" in page(make_member(other_tenant, "owner"), days="30")


def test_file_holds_the_same_numbers(tenant: Any, deployment: Any, owner: Any) -> None:
    furnished(deployment, owner)
    answered = browser(owner).get(reverse("console-insights-file"))
    rows = list(csv.reader(io.StringIO(answered.content.decode("utf-8-sig"))))
    answered.close()
    assert ["Hand-offs, wanted", "Requested by the visitor", "1"] in rows
    assert answered["Content-Type"].startswith("text/csv")


def rated(session: ChatSession, score: int) -> None:
    with tenant_scope(session.tenant_id):
        moment = now()
        fields = {"scale": RatingScale.STARS, "created_at": moment, "changed_at": moment}
        Rating.objects.create(session=session, deployment=session.deployment, score=score, **fields)


def test_what_visitors_thought_is_a_tile(deployment: Any, owner: Any) -> None:
    for score in (5, 4, 4):
        rated(spoken(deployment), score)
    assert '<div class="value num">4.3</div><p class="quiet">of 5, 3 ratings, 0 with comments' in page(owner)


def tried(deployment: Any) -> ChatSession:
    """A test conversation in which everything happened."""
    session = spoken(deployment)
    ChatSession.objects.filter(pk=session.pk).update(is_test=True)
    return session


def test_chat_that_tries_the_bot_is_in_no_figure(tenant: Any, deployment: Any, owner: Any) -> None:
    with tenant_scope(tenant):
        session = tried(deployment)
    turn(session)
    want(session)
    answer(session, owner)
    rated(session, 1)
    with tenant_scope(tenant):
        record(AuditEvent.GATE_BLOCKED, subject=f"session:{session.pk}", data={"gate": "no_prices"})
    with tenant_scope(tenant):
        asked = recently()
        days, turns = insights.by_day(asked), insights.turns(asked)
        others = (insights.hand_offs(asked), insights.gate_actions(asked))
        ratings = rating_figures(None, asked.since, asked.until)
    assert sum(day.conversations for day in days) == 0
    assert turns.total == 0
    assert others == ([], [])
    assert ratings.count == 0


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("gate:no_prices", "The gate no prices"),
        ("asked", "Requested by the visitor"),
        ("billing_question", "Billing question"),
    ],
)
def test_reason_is_said_in_words(code: str, words: str) -> None:
    assert reason_in_words(code) == words


def asked_for(**asked: str) -> tuple[str, str]:
    found = period_from(asked, zone="Europe/Berlin", moment=MOMENT, deployments=[])
    return found.first.isoformat(), found.last.isoformat()


@pytest.mark.parametrize(
    ("asked", "meant"),
    [
        ({}, ("2026-11-14", "2026-11-20")),
        ({"days": "30"}, ("2026-10-22", "2026-11-20")),
        ({"from": "2026-11-01", "to": "2026-11-05"}, ("2026-11-01", "2026-11-05")),
        ({"from": "2026-11-01", "to": "2030-01-01"}, ("2026-11-01", "2026-11-20")),
        ({"from": "2026-11-05", "to": "2026-11-01"}, ("2026-11-14", "2026-11-20")),
        ({"from": "2000-01-01", "to": "2026-11-01"}, ("2026-11-14", "2026-11-20")),
        ({"from": "0001-01-01"}, ("2026-11-14", "2026-11-20")),
        ({"from": "x", "to": "y"}, ("2026-11-14", "2026-11-20")),
    ],
)
def test_period_is_what_was_asked_or_a_week(asked: dict[str, str], meant: tuple[str, str]) -> None:
    assert asked_for(**asked) == meant


def test_days_begin_at_midnight_of_the_company() -> None:
    found = period_from({"days": "7"}, zone="Europe/Berlin", moment=MOMENT, deployments=[])
    assert found.since.astimezone(UTC) == datetime(2026, 11, 13, 23, tzinfo=UTC)
