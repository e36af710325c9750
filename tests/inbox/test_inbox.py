"""Can staff rest, close, give away and mark a conversation, and does a visitor who writes bring it back?"""

from __future__ import annotations

import os
import threading
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest
import time_machine
from django.db import IntegrityError, connection

from apps.audit.models import AuditEntry
from apps.inbox import handoff, labels_and_replies, queries, rules, services
from apps.inbox.enums import DeskStatus, Shown, Snooze
from apps.inbox.models import DeskState, Label, Note, SessionLabel
from apps.inbox.queries import Asked
from apps.sessions import chronicle, person_wanted, presence, pseudonyms
from apps.sessions.enums import EntryKind, Sender
from apps.sessions.locks import lock_session
from apps.sessions.models import ChatSession
from apps.visitors import prompts
from apps.visitors.prompts import Question
from kernel.clock import now
from kernel.errors import NotFound, SilasError
from kernel.tenancy import tenant_scope
from tests.factories.sessions import make_session, say, visitor_of
from tests.factories.tenants import make_member
from tests.rivals import interrupted, race

LATER = timedelta(hours=3)


def _do(session: ChatSession, deed: Any, *args: Any, **kwargs: Any) -> Any:
    with tenant_scope(session.tenant_id):
        return deed(session.pk, *args, **kwargs)


def _stands(session: ChatSession) -> str:
    with tenant_scope(session.tenant_id):
        return str(queries.standing(ChatSession.objects.get(pk=session.pk), now()).status)


def _listed(session: ChatSession, user: Any, **asked: Any) -> list[Any]:
    with tenant_scope(session.tenant_id):
        return [one.session.pk for one in queries.conversations(Asked(**asked), user).rows]


def _events(session: ChatSession) -> list[str]:
    with tenant_scope(session.tenant_id):
        return list(AuditEntry.objects.filter(subject=f"session:{session.pk}").values_list("event", flat=True))


# --- states


def test_conversation_that_nobody_has_touched_is_open(session: ChatSession) -> None:
    assert _stands(session) == DeskStatus.OPEN


def test_resolved_conversation_leaves_the_list_and_stands_under_resolved(session: ChatSession, agent: Any) -> None:
    _do(session, services.resolve, agent)
    assert _listed(session, agent) == []
    assert _listed(session, agent, shown=Shown.RESOLVED) == [session.pk]


def test_resolved_conversation_opens_when_the_visitor_writes(session: ChatSession, agent: Any) -> None:
    _do(session, services.resolve, agent)
    say(session, "One more thing")
    assert _stands(session) == DeskStatus.OPEN


def test_snoozed_conversation_is_back_at_once_when_the_visitor_writes(session: ChatSession, agent: Any) -> None:
    _do(session, services.snooze, agent, until=now() + LATER)
    before = _stands(session)
    say(session, "One more thing")
    assert before == DeskStatus.SNOOZED
    assert _stands(session) == DeskStatus.OPEN


def test_message_that_came_before_opens_nothing(session: ChatSession, agent: Any) -> None:
    say(session, "Again", client_id="one")
    _do(session, services.resolve, agent)
    say(session, "Again", client_id="one")
    assert _stands(session) == DeskStatus.RESOLVED


def test_snoozed_conversation_is_back_by_itself_when_it_is_due(session: ChatSession, agent: Any) -> None:
    _do(session, services.snooze, agent, until=now() + LATER)
    with time_machine.travel(now() + LATER + timedelta(seconds=1), tick=False):
        assert _stands(session) == DeskStatus.OPEN
        assert _listed(session, agent) == [session.pk]


def test_conversation_rests_until_its_visitor_answers(session: ChatSession, agent: Any) -> None:
    _do(session, services.snooze, agent, until=None)
    with time_machine.travel(now() + timedelta(days=400), tick=False):
        resting = (_stands(session), _listed(session, agent), _listed(session, agent, shown=Shown.SNOOZED))
        say(session, "Here I am again")
        assert (*resting, _stands(session)) == (DeskStatus.SNOOZED, [], [session.pk], DeskStatus.OPEN)


def test_press_of_an_answer_brings_a_resting_conversation_back(session: ChatSession, agent: Any) -> None:
    asked = Question.model_validate({"question": "Well?", "options": [{"value": "yes", "label": "Yes"}]})
    card = _do(session, prompts.ask_visitor, asked, actor="api_key:test")
    _do(session, services.snooze, agent, until=None)
    with tenant_scope(session.tenant_id):
        prompts.answer(visitor_of(session.deployment, session.pk), card.pk, value="yes")
    assert _stands(session) == DeskStatus.OPEN


def test_list_says_when_the_next_snoozed_one_is_due(session: ChatSession, agent: Any) -> None:
    until = now() + LATER
    _do(session, services.snooze, agent, until=until)
    with tenant_scope(session.tenant_id):
        assert queries.conversations(Asked(), agent).due == until


@pytest.mark.parametrize("until", [timedelta(0), timedelta(hours=-1), timedelta(days=400)])
def test_snooze_until_the_past_or_for_ever_is_refused(session: ChatSession, agent: Any, until: timedelta) -> None:
    with pytest.raises(SilasError) as refusal:
        _do(session, services.snooze, agent, until=now() + until)
    assert refusal.value.code == "bad_time"


def test_colleagues_reply_leaves_a_resolved_conversation_resolved(session: ChatSession, agent: Any) -> None:
    _do(session, handoff.take_over, agent)
    _do(session, services.resolve, agent)
    _do(session, handoff.reply, agent, "Good bye")
    assert _stands(session) == DeskStatus.RESOLVED


def test_visitor_who_wants_a_person_opens_what_was_resolved_before(session: ChatSession, agent: Any) -> None:
    _do(session, services.resolve, agent)
    with tenant_scope(session.tenant_id):
        person_wanted.want_person(lock_session(session.pk), because=person_wanted.WORK)
    assert _listed(session, agent, tab="unassigned") == [session.pk]


def test_resolving_ends_the_wait_for_a_person(session: ChatSession, agent: Any) -> None:
    with tenant_scope(session.tenant_id):
        person_wanted.want_person(lock_session(session.pk), queue="second_line")
    _do(session, services.resolve, agent)
    with tenant_scope(session.tenant_id):
        found = ChatSession.objects.get(pk=session.pk)
        assert found.wanted_person_at is None
        assert found.wanted_queue == ""
        assert queries.unassigned_count() == 0


def test_resolving_leaves_who_answers_alone(session: ChatSession, agent: Any) -> None:
    _do(session, handoff.take_over, agent)
    _do(session, services.resolve, agent)
    with tenant_scope(session.tenant_id):
        assert ChatSession.objects.get(pk=session.pk).owner_user_id == agent.pk


def test_take_over_opens_what_was_put_away(session: ChatSession, agent: Any) -> None:
    _do(session, services.snooze, agent, until=now() + LATER)
    _do(session, handoff.take_over, agent)
    assert _stands(session) == DeskStatus.OPEN


def test_reopened_conversation_is_open(session: ChatSession, agent: Any) -> None:
    _do(session, services.resolve, agent)
    _do(session, services.reopen, agent)
    assert _stands(session) == DeskStatus.OPEN


def test_resolving_twice_is_written_down_once(session: ChatSession, agent: Any) -> None:
    for _ in range(2):
        _do(session, services.resolve, agent)
    assert _events(session).count("conversation_resolved") == 1


def test_visitor_who_writes_while_somebody_resolves_is_not_overlooked(session: ChatSession, agent: Any) -> None:
    """The visitor's message waits for the lock, and comes after."""

    def write() -> None:
        try:
            say(session, "Wait")
        finally:
            connection.close()

    visitor = threading.Thread(target=write)
    with tenant_scope(session.tenant_id):
        services.resolve(session.pk, agent)
        visitor.start()
        visitor.join(0.3)
        assert visitor.is_alive()
    visitor.join(60)
    assert _stands(session) == DeskStatus.OPEN


def test_time_on_what_does_not_rest_is_refused_by_the_database(session: ChatSession) -> None:
    with pytest.raises(IntegrityError, match="desk_snoozed_until"), tenant_scope(session.tenant_id):
        DeskState.objects.create(session=session, status=DeskStatus.RESOLVED, until=now(), changed_at=now())


# --- whose


def test_assigned_conversation_is_in_their_list_and_not_waiting_for_anybody(
    session: ChatSession, agent: Any, owner: Any
) -> None:
    with tenant_scope(session.tenant_id):
        person_wanted.want_person(lock_session(session.pk))
    _do(session, services.assign, owner, to=agent)
    mine, free = _listed(session, agent, tab="mine"), _listed(session, agent, tab="unassigned")
    assert mine == [session.pk]
    assert free == []


def test_assigned_to_nobody_is_nobodys(session: ChatSession, agent: Any) -> None:
    _do(session, services.assign, agent, to=agent)
    _do(session, services.assign, agent, to=None)
    assert _listed(session, agent, tab="mine") == []


@pytest.mark.parametrize("who", ["viewer", "stranger"])
def test_who_could_not_answer_is_assigned_nothing(session: ChatSession, agent: Any, who: str, request: Any) -> None:
    with pytest.raises(SilasError) as refusal:
        _do(session, services.assign, agent, to=request.getfixturevalue(who))
    assert refusal.value.code == "assignee_unfit"


def test_member_of_another_tenant_is_assigned_nothing(session: ChatSession, agent: Any, other_tenant: Any) -> None:
    with pytest.raises(SilasError):
        _do(session, services.assign, agent, to=make_member(other_tenant, "agent"))


def test_assigning_opens_nothing_and_hides_nothing(session: ChatSession, agent: Any) -> None:
    _do(session, services.resolve, agent)
    _do(session, services.assign, agent, to=agent)
    assert _stands(session) == DeskStatus.RESOLVED


# --- labels


@pytest.fixture
def label(session: ChatSession, agent: Any) -> Label:
    with tenant_scope(session.tenant_id):
        return labels_and_replies.save_label(agent, name="Refunds", colour="red")


def test_label_is_put_on_and_taken_off(session: ChatSession, agent: Any, label: Label) -> None:
    _do(session, services.mark, agent, label_id=label.pk, on=True)
    on = _listed(session, agent, label=label.pk)
    _do(session, services.mark, agent, label_id=label.pk, on=False)
    assert on == [session.pk]
    assert _listed(session, agent, label=label.pk) == []


def test_label_put_on_twice_is_there_once(session: ChatSession, agent: Any, label: Label) -> None:
    for _ in range(2):
        _do(session, services.mark, agent, label_id=label.pk, on=True)
    with tenant_scope(session.tenant_id):
        assert SessionLabel.objects.count() == 1


def test_label_of_another_tenant_is_not_found(session: ChatSession, agent: Any, other_tenant: Any) -> None:
    foreigner = make_member(other_tenant, "owner")
    with tenant_scope(other_tenant):
        foreign = labels_and_replies.save_label(foreigner, name="Theirs", colour="red")
    with pytest.raises(NotFound):
        _do(session, services.mark, agent, label_id=foreign.pk, on=True)


def test_deleted_label_is_gone_from_conversations(session: ChatSession, agent: Any, label: Label) -> None:
    _do(session, services.mark, agent, label_id=label.pk, on=True)
    with tenant_scope(session.tenant_id):
        labels_and_replies.delete_label(agent, label.pk)
        assert queries.labels_of([session.pk]) == {}


@pytest.mark.parametrize(
    ("name", "colour", "code"),
    [
        ("", "red", "bad_name"),
        ("x" * 41, "red", "bad_name"),
        ("Vip", "pink", "bad_colour"),
        ("refunds", "red", "name_taken"),
    ],
)
def test_label_that_makes_no_sense_is_refused(
    session: ChatSession, agent: Any, label: Label, name: str, colour: str, code: str
) -> None:
    with pytest.raises(SilasError) as refusal, tenant_scope(session.tenant_id):
        labels_and_replies.save_label(agent, name=name, colour=colour)
    assert refusal.value.code == code


def test_label_keeps_its_own_name_with_another_colour(session: ChatSession, agent: Any, label: Label) -> None:
    with tenant_scope(session.tenant_id):
        labels_and_replies.save_label(agent, name="Refunds", colour="blue", label_id=label.pk)
        assert [one.colour for one in queries.labels()] == ["blue"]


def test_label_that_is_put_on_while_a_colleague_deletes_it_is_gone(
    session: ChatSession, agent: Any, label: Label
) -> None:
    def put_on(meet: Any) -> None:
        with tenant_scope(session.tenant_id):
            services.mark(session.pk, agent, label_id=label.pk, on=True)
            meet()

    def delete() -> None:
        with tenant_scope(session.tenant_id):
            labels_and_replies.delete_label(agent, label.pk)

    assert interrupted(put_on, delete) == [None, None]
    with tenant_scope(session.tenant_id):
        assert queries.labels() == []
        assert SessionLabel.objects.count() == 0


def test_two_who_write_the_same_name_at_once_make_one_label(session: ChatSession, agent: Any) -> None:
    def first(meet: Any) -> str:
        with tenant_scope(session.tenant_id):
            made = labels_and_replies.save_label(agent, name="Vip", colour="red")
            meet()
            return str(made.name)

    def second() -> str:
        with tenant_scope(session.tenant_id):
            return str(labels_and_replies.save_label(agent, name="VIP", colour="red").name)

    kept, refused = interrupted(first, second)
    assert kept == "Vip"
    assert isinstance(refused, SilasError)
    assert refused.code == "name_taken"


def test_reply_that_two_presses_send_at_once_is_said_once(session: ChatSession, agent: Any) -> None:
    _do(session, handoff.take_over, agent)

    def say_it() -> int:
        return int(_do(session, handoff.reply, agent, "I am here.", nonce="n1").seq)

    assert len(set(race(say_it, say_it, say_it))) == 1


# --- canned replies


def test_canned_reply_is_written_to_a_visitor_by_name() -> None:
    names = {"member": "Grace", "chatbot": "Help desk"}
    text = "Hello {visitor name}, {other}"
    assert rules.written_to(text, visitor="Maria", **names) == "Hello Maria, {other}"
    assert rules.written_to("{my name} of {chatbot}", visitor="", **names) == "Grace of Help desk"


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("Hello {visitor name}, how are you?", "Hello, how are you?"),
        ("Hello, {visitor name}!", "Hello!"),
        ("{visitor name}", ""),
    ],
)
def test_canned_reply_greets_a_visitor_without_a_name_without_one(text: str, read: str) -> None:
    assert rules.written_to(text, visitor="", member="Grace", chatbot="Help desk") == read


def test_row_shows_what_the_visitor_asked_and_never_the_bots_sentence(deployment: Any) -> None:
    session = make_session(deployment)
    say(session, "Where is my refund?")
    with tenant_scope(deployment.tenant):
        chronicle.append(
            lock_session(session.pk), kind=EntryKind.MESSAGE, sender=Sender.BOT, text="I do not know that."
        )
    with tenant_scope(deployment.tenant):
        listed = queries.conversation(session.pk)
    assert listed.asked == "Where is my refund?"
    assert listed.waiting_since is None


def test_row_tells_how_long_the_visitor_waits(deployment: Any, agent: Any) -> None:
    session = make_session(deployment)
    with tenant_scope(deployment.tenant):
        handoff.take_over(session.pk, agent)
    say(session, "Hello?")
    with tenant_scope(deployment.tenant):
        waiting = queries.conversation(session.pk)
        assert waiting.waiting_since == waiting.asked_at is not None
        handoff.reply(session.pk, agent, "Good morning.")
    with tenant_scope(deployment.tenant):
        assert queries.conversation(session.pk).waiting_since is None


def test_unnamed_visitor_has_a_name_by_which_the_list_finds_them(deployment: Any) -> None:
    session, other = make_session(deployment), make_session(deployment)
    for one in (session, other):
        say(one, "Hello")
    name = pseudonyms.name_of(session.pk)
    assert len(name.split()) == 2
    with tenant_scope(deployment.tenant):
        found = queries.conversations(queries.Asked(words=name.lower()), None)
    ids = {row.session.pk for row in found.rows}
    assert session.pk in ids
    assert (other.pk in ids) == (pseudonyms.name_of(other.pk) == name)


def test_canned_reply_is_changed_and_deleted(session: ChatSession, agent: Any) -> None:
    with tenant_scope(session.tenant_id):
        reply = labels_and_replies.save_reply(agent, name="hi", text="Hello")
        labels_and_replies.save_reply(agent, name="hi", text="Good day", reply_id=reply.pk)
        changed = [one.text for one in queries.canned_replies()]
        labels_and_replies.delete_reply(agent, reply.pk)
        assert changed == ["Good day"]
        assert queries.canned_replies() == []


@pytest.mark.parametrize("text", ["", "  ", "x" * 4001, "a\0b"])
def test_canned_reply_that_cannot_be_sent_is_refused(session: ChatSession, agent: Any, text: str) -> None:
    with pytest.raises(SilasError), tenant_scope(session.tenant_id):
        labels_and_replies.save_reply(agent, name="hi", text=text)


# --- sent twice


def test_reply_sent_twice_is_said_once(session: ChatSession, agent: Any) -> None:
    _do(session, handoff.take_over, agent)
    said = {_do(session, handoff.reply, agent, "I am here.", nonce="n1").seq for _ in range(2)}
    assert len(said) == 1


def test_same_words_with_another_nonce_are_said_again(session: ChatSession, agent: Any) -> None:
    _do(session, handoff.take_over, agent)
    assert len({_do(session, handoff.reply, agent, "Yes.", nonce=nonce).seq for nonce in ("n1", "n2")}) == 2


def test_visitor_is_not_told_the_nonce_of_a_reply(session: ChatSession, agent: Any) -> None:
    _do(session, handoff.take_over, agent)
    _do(session, handoff.reply, agent, "Yes.", nonce="secret-nonce")
    with tenant_scope(session.tenant_id):
        assert "secret-nonce" not in str(presence.missed(session.pk, 0))


def test_note_sent_twice_is_kept_once(session: ChatSession, agent: Any) -> None:
    for _ in range(2):
        _do(session, services.note, agent, "Call her back.", nonce="n1")
    with tenant_scope(session.tenant_id):
        assert Note.objects.count() == 1


# --- who may


DEEDS: dict[str, Any] = {
    "resolve": lambda user: (services.resolve, (user,), {}),
    "reopen": lambda user: (services.reopen, (user,), {}),
    "snooze": lambda user: (services.snooze, (user,), {"until": now() + LATER}),
    "assign": lambda user: (services.assign, (user,), {"to": None}),
    "mark": lambda user: (services.mark, (user,), {"label_id": user.pk, "on": True}),
    "note": lambda user: (services.note, (user, "Hello"), {}),
}


@pytest.mark.parametrize("who", ["viewer", "stranger"])
@pytest.mark.parametrize("deed", DEEDS)
def test_deed_without_the_role_is_refused(session: ChatSession, deed: str, who: str, request: Any) -> None:
    verb, args, kwargs = DEEDS[deed](request.getfixturevalue(who))
    with pytest.raises(SilasError) as refusal:
        _do(session, verb, *args, **kwargs)
    assert refusal.value.code == "forbidden_role"


@pytest.mark.parametrize("deed", DEEDS)
def test_deed_from_another_tenant_is_not_found(session: ChatSession, deed: str, other_tenant: Any) -> None:
    verb, args, kwargs = DEEDS[deed](make_member(other_tenant, "owner"))
    with pytest.raises(NotFound), tenant_scope(other_tenant):
        verb(session.pk, *args, **kwargs)


def test_every_deed_is_written_down_without_its_words(session: ChatSession, agent: Any, label: Label) -> None:
    _do(session, services.note, agent, "Top secret words")
    _do(session, services.mark, agent, label_id=label.pk, on=True)
    _do(session, services.assign, agent, to=agent)
    _do(session, services.snooze, agent, until=now() + LATER)
    _do(session, services.resolve, agent)
    _do(session, services.reopen, agent)
    wanted = {"note_written", "conversation_labelled", "conversation_assigned", "conversation_snoozed"}
    with tenant_scope(session.tenant_id):
        kept = str(list(AuditEntry.objects.values_list("data", flat=True)))
    assert wanted | {"conversation_resolved", "conversation_reopened"} <= set(_events(session))
    assert "secret" not in kept
    assert "Refunds" not in kept


# --- until when


MONDAY = datetime(2026, 11, 23, 10, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("choice", "until"),
    [
        (Snooze.LATER, datetime(2026, 11, 23, 13, 0, tzinfo=UTC)),
        (Snooze.TOMORROW, datetime(2026, 11, 24, 9, 0, tzinfo=UTC)),
        (Snooze.MONDAY, datetime(2026, 11, 30, 9, 0, tzinfo=UTC)),
        (Snooze.WEEK, datetime(2026, 11, 30, 10, 0, tzinfo=UTC)),
        (Snooze.REPLY, None),
    ],
)
def test_snooze_choice_ends_when_its_words_say(choice: Snooze, until: datetime | None) -> None:
    assert rules.snoozed_until(choice, moment=MONDAY) == until


# --- walls


def refused_to_a_worker(statement: str) -> bool:
    with psycopg.connect(os.environ["DATABASE_WORK_URL"]) as worker:
        try:
            worker.execute(statement)
        except psycopg.errors.InsufficientPrivilege:
            return True
    return False


@pytest.mark.parametrize("table", ["note", "cannedreply"])
def test_worker_cannot_read_what_staff_keep(session: ChatSession, table: str) -> None:
    assert refused_to_a_worker(f"SELECT FROM silas_sessions_{table}")


def test_worker_reads_of_the_desk_only_the_state(session: ChatSession) -> None:
    assert not refused_to_a_worker("SELECT session_id, status FROM silas_sessions_deskstate")
    assert refused_to_a_worker("SELECT assignee_id FROM silas_sessions_deskstate")


@pytest.mark.parametrize("table", ["label", "sessionlabel", "deskstate"])
def test_worker_cannot_write_what_automations_read_of_the_desk(session: ChatSession, table: str) -> None:
    assert refused_to_a_worker(f"DELETE FROM silas_sessions_{table}")
