"""Asking the customer about a card: the card waits outside of the queue until the customer writes, or for a day."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
import time_machine

from apps.approvals import queries
from apps.approvals.cards import lifecycle
from apps.approvals.cards.services import answer_card
from apps.approvals.enums import CardKind, CardStatus, Risk, Withdrawal
from apps.approvals.models import Card, CardQuestion, Look
from apps.audit.models import AuditEntry
from apps.bus.models import QueueMessage
from apps.inbox import handoff
from apps.inbox.card_questions import ask_customer
from apps.sessions.enums import Owner
from apps.sessions.models import ChatSession, ChronicleEntry
from apps.tenants.enums import KeyScope
from kernel.clock import now
from kernel.errors import NotFound, SilasError
from kernel.tenancy import tenant_scope
from tests import rivals
from tests.console.test_push import due, letters, push_service, pushes, send, subscribe
from tests.factories.api import Api, code
from tests.factories.cards import make_kind
from tests.factories.console import make_card
from tests.factories.pauses import bot_lines, converse, serve
from tests.factories.sessions import make_session, say

TEXT = "Which flat do you mean, 3 or 4?"


@pytest.fixture
def session(deployment: Any) -> ChatSession:
    made = make_session(deployment)
    say(made, "Please change my address.")
    return made


@pytest.fixture
def card(tenant: Any, session: ChatSession) -> Card:
    return card_in(tenant, session)


def card_in(tenant: Any, session: ChatSession | None, **fields: Any) -> Card:
    conversation = session.pk if session else None
    return make_card(tenant, **{"risk": Risk.MEDIUM, "session_id": conversation, "seconds": 600, **fields})


def ask(card: Card, by: Any, text: str = TEXT, **wait: timedelta) -> CardQuestion:
    with tenant_scope(card.tenant):
        return ask_customer(card.pk, by, text, **wait)


def refusal(card: Card, by: Any, text: str = TEXT) -> str:
    with pytest.raises(SilasError) as refused:
        ask(card, by, text)
    return refused.value.code


def lists(card: Card) -> tuple[bool, bool]:
    """Whether the card is in the queue, and whether it waits for the customer."""
    with tenant_scope(card.tenant):
        to_decide, parked = queries.parts_of_queue()
        assert [other.pk for other in queries.waiting_cards()] == [other.pk for other in to_decide]
        return card.pk in {other.pk for other in to_decide}, card.pk in {other.pk for other in parked}


def fresh(card: Card) -> Card:
    with tenant_scope(card.tenant):
        return queries.get_card(card.pk)


def question_of(card: Card) -> CardQuestion:
    with tenant_scope(card.tenant):
        row: CardQuestion = CardQuestion.objects.get(card=card)
        return row


def test_question_is_said_by_the_person_and_the_bot_keeps_the_conversation(
    card: Card, session: ChatSession, approver: Any
) -> None:
    question = ask(card, approver)
    with tenant_scope(card.tenant):
        entry = ChronicleEntry.objects.get(session=session, seq=question.seq)
        owner = ChatSession.objects.get(pk=session.pk).owner
    assert entry.text == TEXT
    assert entry.sender == "human"
    assert entry.author == approver
    assert entry.payload["name"] == approver.display_name
    assert owner == Owner.BOT


def test_card_that_waits_is_out_of_the_queue_and_shows_what_it_showed(card: Card, approver: Any) -> None:
    face = queries.face_hash(card)
    question = ask(card, approver)
    assert lists(card) == (False, True)
    assert question.waits_until == question.asked_at + timedelta(days=1)
    assert fresh(card).expires_at == card.expires_at + timedelta(days=1)
    assert queries.face_hash(fresh(card)) == face


def test_wait_is_a_day_at_most(card: Card, approver: Any) -> None:
    question = ask(card, approver, wait=timedelta(days=9))
    assert question.waits_until == question.asked_at + timedelta(days=1)
    assert fresh(card).expires_at == card.expires_at + timedelta(days=1)


def test_question_is_audited_without_its_words(card: Card, session: ChatSession, approver: Any) -> None:
    question = ask(card, approver)
    with tenant_scope(card.tenant):
        entry = AuditEntry.objects.get(event="card_question_asked")
    assert entry.actor == approver.actor
    assert entry.subject == f"card:{card.pk}"
    assert str(session.pk) in entry.data
    assert f'"seq":{question.seq}' in entry.data
    assert TEXT not in entry.data


def test_next_message_of_the_customer_brings_the_card_back(card: Card, session: ChatSession, approver: Any) -> None:
    ask(card, approver)
    answer = say(session, "Number 4")
    say(session, "Thanks")
    question = question_of(card)
    assert question.answer_seq == answer.seq
    assert question.ended_at is not None
    assert lists(card) == (True, False)


def test_message_waits_for_nobody_who_decides_the_card(card: Card, session: ChatSession, approver: Any) -> None:
    ask(card, approver)
    with tenant_scope(card.tenant):
        lifecycle.assign_card(card.pk, to=approver, by=approver)  # holds the lock of the card
        (answer,) = rivals.race(lambda: say(session, "Number 4"))
    assert question_of(card).answer_seq == answer.seq


def test_message_of_staff_and_bot_ends_no_wait(card: Card, session: ChatSession, approver: Any, agent: Any) -> None:
    ask(card, approver)
    serve(session)
    with tenant_scope(session.tenant):
        handoff.take_over(session.pk, agent)
        handoff.reply(session.pk, agent, "One moment")
    assert question_of(card).ended_at is None


def test_bot_takes_the_answer_as_usual(card: Card, session: ChatSession, approver: Any) -> None:
    serve(session)
    before = len(bot_lines(session))
    ask(card, approver)
    serve(session)
    assert len(bot_lines(session)) == before
    converse(session, "Number 4")
    assert len(bot_lines(session)) == before + 1


def test_message_in_another_conversation_ends_no_wait(card: Card, deployment: Any, approver: Any) -> None:
    ask(card, approver)
    say(make_session(deployment), "Number 4")
    assert lists(card) == (False, True)


def test_card_comes_back_by_itself_when_the_customer_stays_silent(card: Card, approver: Any) -> None:
    ask(card, approver)
    with time_machine.travel(now() + timedelta(days=1, seconds=1), tick=False):
        assert lists(card) == (True, False)
        assert fresh(card).is_open
        with tenant_scope(card.tenant):
            assert lifecycle.expire_card(card.pk) == fresh(card).expires_at


def test_card_that_waits_may_be_decided(card: Card, session: ChatSession, approver: Any) -> None:
    ask(card, approver)
    with tenant_scope(card.tenant):
        answer_card(card.pk, user=approver, choice="approve", face=queries.face_hash(card))
    say(session, "Number 4")
    assert fresh(card).status == CardStatus.DECIDED
    assert question_of(card).answer_seq is None
    with tenant_scope(card.tenant):
        assert not CardQuestion.objects.get(card=card).is_waiting
    assert lists(card) == (False, False)


def test_second_question_waits_for_the_first(card: Card, session: ChatSession, approver: Any, owner: Any) -> None:
    ask(card, approver)
    assert refusal(card, owner) == "question_waiting"
    say(session, "Number 4")
    ask(card, owner)
    with time_machine.travel(now() + timedelta(days=1, seconds=1)):
        ask(card, owner)
    with tenant_scope(card.tenant):
        assert CardQuestion.objects.filter(card=card, ended_at=None).count() == 1


def test_card_is_asked_about_three_times_at_most(card: Card, session: ChatSession, approver: Any) -> None:
    for number in range(3):
        ask(card, approver)
        say(session, f"Answer {number}")
    assert refusal(card, approver) == "too_many_questions"


def test_of_two_who_ask_at_once_one_asks(card: Card, session: ChatSession, approver: Any, owner: Any) -> None:
    outcomes = rivals.race(lambda: ask(card, approver), lambda: ask(card, owner, "Another question"))
    refused = [outcome for outcome in outcomes if isinstance(outcome, SilasError)]
    assert [error.code for error in refused] == ["question_waiting"]
    with tenant_scope(card.tenant):
        assert CardQuestion.objects.filter(card=card).count() == 1
        assert ChronicleEntry.objects.filter(session=session, sender="human").count() == 1


def test_question_and_answer_at_once_leave_no_card_behind(card: Card, session: ChatSession, approver: Any) -> None:
    asked, said = rivals.race(lambda: ask(card, approver), lambda: say(session, "Number 4"))
    assert isinstance(asked, CardQuestion)
    answered = question_of(card).answer_seq
    assert answered == (said.seq if said.seq > asked.seq else None)


@pytest.mark.parametrize("text", ["", "  ", "a" * 4001, "a\0b"])
def test_question_that_cannot_be_shown_is_refused(card: Card, approver: Any, text: str) -> None:
    assert refusal(card, approver, text) == "invalid_text"
    assert lists(card) == (True, False)


@pytest.mark.parametrize("who", ["agent", "viewer", "stranger"])
def test_only_who_may_decide_asks(card: Card, who: str, request: pytest.FixtureRequest) -> None:
    assert refusal(card, request.getfixturevalue(who)) == "approver_required"


def test_card_of_another_tenant_is_not_found(card: Card, other_tenant: Any) -> None:
    from tests.factories.tenants import make_member

    foreigner = make_member(other_tenant, "owner")
    with tenant_scope(other_tenant), pytest.raises(NotFound):
        ask_customer(card.pk, foreigner, TEXT)


def test_card_without_a_conversation_takes_no_question(tenant: Any, approver: Any) -> None:
    assert refusal(card_in(tenant, None), approver) == "card_takes_no_question"


def test_card_about_a_conversation_that_is_gone_takes_no_question(tenant: Any, approver: Any, card: Card) -> None:
    gone = card_in(tenant, None, session_id=card.pk)
    assert refusal(gone, approver) == "card_takes_no_question"


@pytest.mark.parametrize("kind", [CardKind.GATE, CardKind.POST_EXECUTION])
def test_card_of_a_gate_or_a_result_takes_no_question(
    tenant: Any, session: ChatSession, approver: Any, kind: CardKind
) -> None:
    assert refusal(make_kind(tenant, kind, session_id=session.pk), approver) == "card_takes_no_question"


def test_settled_card_takes_no_question(card: Card, approver: Any) -> None:
    with tenant_scope(card.tenant):
        lifecycle.withdraw_card(card.pk, reason=Withdrawal.STAFF)
    assert refusal(card, approver) == "card_withdrawn"


def test_who_has_taken_over_asks_and_a_colleague_does_not(
    card: Card, session: ChatSession, owner: Any, approver: Any
) -> None:
    with tenant_scope(card.tenant):
        handoff.take_over(session.pk, owner)
    assert refusal(card, approver) == "owned_by_other"
    assert ask(card, owner).asker == owner


class TestApi:
    def put(self, api: Api, card: Any, **body: Any) -> Any:
        return api.send("post", f"/api/v1/cards/{getattr(card, 'pk', card)}/question", body)

    def test_program_asks_and_the_card_says_so(self, tenant: Any, card: Card, session: ChatSession) -> None:
        api = Api(tenant, KeyScope.CARDS_READ, KeyScope.CARDS_DECIDE, KeyScope.SESSIONS_WRITE)
        answer = self.put(api, card, text=TEXT, hours=2)
        assert answer.status_code == 201
        question = answer.json()["question"]
        assert question["by"] is None
        assert question["is_waiting"] is True
        assert question["answer_seq"] is None
        assert question_of(card).waits_until == question_of(card).asked_at + timedelta(hours=2)
        said = say(session, "Number 4")
        question = api.get(f"/api/v1/cards/{card.pk}").json()["question"]
        assert question["is_waiting"] is False
        assert question["answer_seq"] == said.seq

    def test_list_is_filtered(self, tenant: Any, card: Card, session: ChatSession, approver: Any) -> None:
        api, other = Api(tenant), card_in(tenant, session)
        ask(card, approver)

        def ids(value: str) -> list[str]:
            rows = api.get("/api/v1/cards", **({"waiting_for_customer": value} if value else {})).json()["cards"]
            return [row["id"] for row in rows]

        assert ids("true") == [str(card.pk)]
        assert ids("false") == [str(other.pk)]
        assert ids("") == [str(other.pk), str(card.pk)]
        assert code(api.get("/api/v1/cards", waiting_for_customer="perhaps")) == (400, "invalid")

    @pytest.mark.parametrize(
        "scopes", [[KeyScope.CARDS_READ, KeyScope.SESSIONS_WRITE], [KeyScope.CARDS_DECIDE, KeyScope.SESSIONS_READ]]
    )
    def test_program_needs_both_scopes(self, tenant: Any, card: Card, scopes: list[KeyScope]) -> None:
        assert code(self.put(Api(tenant, *scopes), card, text=TEXT)) == (403, "forbidden_scope")
        assert lists(card) == (True, False)

    @pytest.mark.parametrize(
        "body",
        [{}, {"text": ""}, {"text": "a" * 4001}, {"text": TEXT, "hours": 25}, {"text": TEXT, "hours": 0}, {"x": 1}],
    )
    def test_bad_request(self, tenant: Any, card: Card, body: dict[str, Any]) -> None:
        assert code(self.put(Api(tenant), card, **body)) == (400, "invalid")

    def test_roles_and_foreign_cards(self, tenant: Any, other_tenant: Any, card: Card, approver: Any) -> None:
        assert code(self.put(Api(other_tenant), card, text=TEXT)) == (404, "not_found")
        assert self.put(Api(tenant, member=approver), card, text=TEXT).json()["question"]["by"]["id"] == str(
            approver.pk
        )
        assert code(self.put(Api(tenant), card, text=TEXT)) == (409, "question_waiting")

    def test_agent_is_refused(self, tenant: Any, card: Card, agent: Any) -> None:
        assert code(self.put(Api(tenant, member=agent), card, text=TEXT)) == (403, "forbidden_role")


class TestAlerts:
    """Members who may decide are notified of the card when it is opened and when it is back, and not between."""

    @pytest.fixture(autouse=True)
    def _push_on(self, tenant: Any, approver: Any, settings: Any) -> None:
        settings.SILAS_SECRETS_KEY = "a-secrets-key"
        subscribe(tenant, approver)

    def told(self, card: Card, ahead: timedelta = timedelta(minutes=1)) -> list[str]:
        """Where the pushes lead that are due."""
        return [push["url"] for push in pushes(due(card.tenant, ahead))]

    def jobs(self, card: Card) -> list[timedelta]:
        """When the alerts about the card are carried out; the one for its opening comes first."""
        with tenant_scope(card.tenant):
            rows = QueueMessage.objects.filter(kind="card_alert", scope_id__endswith=str(card.pk)).order_by("position")
            return [row.available_at - now() for row in rows]

    def test_card_that_waits_for_the_customer_is_not_pushed(self, card: Card, approver: Any) -> None:
        ask(card, approver)
        assert self.told(card) == []

    def test_card_is_pushed_anew_when_the_customer_answers_and_once(
        self, card: Card, session: ChatSession, approver: Any
    ) -> None:
        assert self.told(card) == [f"/console/review/{card.pk}/"]
        ask(card, approver)
        assert self.told(card) == []
        say(session, "Number 4")
        assert self.told(card) == [f"/console/review/{card.pk}/"]
        say(session, "Thanks")
        assert self.told(card, timedelta(minutes=2)) == []
        opened, timed_out, answered = self.jobs(card)
        assert opened <= timedelta()
        assert timed_out > timedelta(hours=23)
        assert answered <= timedelta()

    def test_card_is_pushed_anew_each_time_that_it_is_back(
        self, card: Card, session: ChatSession, approver: Any
    ) -> None:
        self.told(card)
        for number in range(2):
            ask(card, approver)
            say(session, f"Answer {number}")
            assert self.told(card, timedelta(minutes=number + 1)) == [f"/console/review/{card.pk}/"]

    def test_card_is_pushed_anew_when_the_wait_is_over_and_a_late_answer_pushes_nothing(
        self, card: Card, session: ChatSession, approver: Any
    ) -> None:
        self.told(card)
        ask(card, approver)
        with time_machine.travel(now() + timedelta(days=1, seconds=1), tick=False):
            assert self.told(card) == [f"/console/review/{card.pk}/"]
            say(session, "Number 4")
            assert self.told(card, timedelta(minutes=2)) == []
        assert len(self.jobs(card)) == 2

    def test_card_decided_while_it_waits_is_not_pushed(
        self, card: Card, session: ChatSession, approver: Any, owner: Any
    ) -> None:
        ask(card, owner)
        with tenant_scope(card.tenant):
            answer_card(card.pk, user=owner, choice="decline", face=queries.face_hash(card))
        say(session, "Number 4")
        assert self.told(card) == []
        assert len(self.jobs(card)) == 2

    def test_card_that_expired_is_not_pushed(self, card: Card, session: ChatSession, approver: Any) -> None:
        ask(card, approver)
        with time_machine.travel(now() + timedelta(days=2), tick=False):
            say(session, "Number 4")
            assert self.told(card) == []

    def test_email_counts_the_card_from_when_it_was_back_and_as_not_viewed(
        self, card: Card, session: ChatSession, approver: Any
    ) -> None:
        with tenant_scope(card.tenant):
            lifecycle.record_look(card, approver)
        ask(card, approver)
        with time_machine.travel(now() + timedelta(minutes=30), tick=False):
            assert letters(due(card.tenant)) == []
            say(session, "Number 4")
            assert letters(due(card.tenant, timedelta(minutes=9))) == []
            assert letters(due(card.tenant, timedelta(minutes=11))) == [{"medium": 1}]
            assert letters(due(card.tenant, timedelta(minutes=30))) == []

    @pytest.mark.parametrize("back", ["answered", "the wait is over"])
    def test_no_email_about_a_card_that_was_viewed_again_since_it_is_back(
        self, card: Card, session: ChatSession, approver: Any, back: str
    ) -> None:
        with tenant_scope(card.tenant):
            lifecycle.record_look(card, approver)
        ask(card, approver)
        with tenant_scope(card.tenant):
            lifecycle.record_look(card, approver)
        later = timedelta(minutes=30) if back == "answered" else timedelta(days=1, minutes=1)
        with time_machine.travel(now() + later, tick=False):
            if back == "answered":
                say(session, "Number 4")
            with tenant_scope(card.tenant):
                for _ in range(2):
                    lifecycle.record_look(fresh(card), approver)
                assert Look.objects.filter(card=card, user=approver).count() == 3
            assert letters(due(card.tenant, timedelta(minutes=30))) == []

    def test_worker_pushes_when_the_customer_answers(self, card: Card, session: ChatSession, approver: Any) -> None:
        with push_service() as (endpoint, got):
            subscribe(card.tenant, approver, endpoint)
            ask(card, approver)
            send(card.tenant)
            assert got == []
            say(session, "Number 4")
            send(card.tenant)
            assert len(got) == 1
