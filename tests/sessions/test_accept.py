"""Is a visitor's message stored once, in order, and owed an answer?"""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from typing import Any

import pytest
from django.conf import settings
from django.test import override_settings

from apps.bus import services as bus
from apps.bus.queries import pending_count
from apps.guard.models import GuardedRun
from apps.sessions import turn
from apps.sessions.models import ChatSession, ChronicleEntry
from apps.sessions.queries import chronicle_after
from apps.sessions.schemas import Accepted, Busy
from apps.sessions.services import accept_message, start_session
from apps.sessions.steps import opening
from apps.tenants.models import Deployment
from kernel.errors import NotFound, SilasError
from kernel.tenancy import tenant_scope
from tests.factories.sessions import make_session, say
from tests.rivals import race


def _seqs(session: ChatSession) -> list[int]:
    with tenant_scope(session.tenant_id):
        return [entry.seq for entry in chronicle_after(session.pk, 0)]


def test_message_is_committed_under_the_next_seq(deployment: Any) -> None:
    session = make_session(deployment)
    assert say(session, "hello") == Accepted(1, repeated=False)


def test_message_sent_twice_with_one_client_id_is_stored_once(deployment: Any) -> None:
    session = make_session(deployment)
    say(session, "hello", "a")
    assert say(session, "hello", "a") == Accepted(1, repeated=True)
    assert _seqs(session) == [1]


def test_rivals_with_one_client_id_store_it_once(deployment: Any) -> None:
    session = make_session(deployment)
    seqs = {accepted.seq for accepted in race(*[lambda: say(session, "hello", "a")] * 8)}
    assert seqs == {1}
    assert _seqs(session) == [1]


def test_rivals_with_own_client_ids_leave_no_gap(deployment: Any) -> None:
    session = make_session(deployment)
    race(*[partial(say, session, "hello", f"id-{i}") for i in range(12)])
    assert _seqs(session) == list(range(1, 13))


@override_settings(VISITOR_LIMITS={**settings.VISITOR_LIMITS, "pending_turns": 3})
def test_message_beyond_pending_limit_is_busy_and_not_stored(deployment: Any) -> None:
    session = make_session(deployment)
    for i in range(3):
        say(session, "hello", f"id-{i}")
    assert isinstance(say(session, "one more", "id-3"), Busy)
    assert len(_seqs(session)) == 3


@override_settings(MAX_CHRONICLE=2)
def test_message_to_a_conversation_that_is_full_is_refused_and_not_stored(deployment: Any) -> None:
    session = make_session(deployment)
    for number in range(2):
        say(session, "hello", f"id-{number}")
    with pytest.raises(SilasError, match="very long"):
        say(session, "one more", "id-2")
    assert _seqs(session) == [1, 2]


@override_settings(MAX_CHRONICLE=1)
def test_message_sent_again_to_a_conversation_that_is_full_is_acknowledged(deployment: Any) -> None:
    session = make_session(deployment)
    say(session, "hello", "a")
    assert say(session, "hello", "a") == Accepted(1, repeated=True)


def test_conversation_has_a_cost_cap_of_its_own(deployment: Any) -> None:
    session = make_session(deployment)
    say(session, "hello")
    with tenant_scope(deployment.tenant_id):
        opened = turn.open_turn(session.pk, consumer="test")
        assert opened is not None
        assert GuardedRun.objects.get(pk=opened.run.run_id).frozen_limits.cost_usd == settings.MAX_CONVERSATION_USD


@override_settings(VISITOR_LIMITS={**settings.VISITOR_LIMITS, "pending_turns": 60})
@pytest.mark.parametrize(("lines", "said"), [(3, 0), (12, 0), (12, 1), (45, 0), (45, 7)])
def test_turn_begins_with_what_was_said_before_its_message_however_much_waits_behind_it(
    deployment: Any, monkeypatch: Any, lines: int, said: int
) -> None:
    monkeypatch.setattr(opening, "HISTORY_MESSAGES", 5)
    session = make_session(deployment)
    for number in range(lines):
        say(session, f"line {number + 1}")
    with tenant_scope(deployment.tenant_id):
        for _ in range(said):
            taken = bus.lease("proxy", consumer="test", scope_id=session.pk)
            assert taken is not None
            bus.ack(taken)
        opened = turn.open_turn(session.pk, consumer="test")
    assert opened is not None
    assert opened.message.text == f"line {said + 1}"
    assert [each.seq for each in opened.recent] == list(range(1, said + 1))[-4:]


def test_message_at_a_deployment_that_was_switched_off_gets_no_answer(deployment: Any) -> None:
    session = make_session(deployment)
    say(session, "hello")
    with tenant_scope(deployment.tenant_id):
        Deployment.objects.filter(pk=deployment.pk).update(enabled=False)
        assert turn.open_turn(session.pk, consumer="test") is None
        assert pending_count("proxy", session.pk) == 0


def test_message_to_a_conversation_of_another_tenant_is_not_found(deployment: Any, other_tenant: Any) -> None:
    session = make_session(deployment)
    with tenant_scope(other_tenant), pytest.raises(NotFound):
        accept_message(session.pk, text="hello")


def test_message_in_a_rolled_back_scope_leaves_nothing(deployment: Any) -> None:
    session = make_session(deployment)
    with suppress(RuntimeError), tenant_scope(session.tenant_id):
        accept_message(session.pk, text="hello")
        raise RuntimeError
    with tenant_scope(session.tenant_id):
        assert not ChronicleEntry.objects.filter(session=session).exists()
        assert pending_count("proxy", session.pk) == 0


def test_resume_token_finds_its_conversation_again(deployment: Any) -> None:
    first = start_session(deployment)
    assert start_session(deployment, resume_token=first.resume_token).session_id == first.session_id


def test_unknown_resume_token_begins_a_new_conversation(deployment: Any) -> None:
    first = start_session(deployment)
    assert start_session(deployment, resume_token="guess").session_id != first.session_id


def test_resume_token_of_another_deployment_begins_a_new_conversation(deployment: Any, tenant: Any) -> None:
    from tests.factories.tenants import make_deployment

    first = start_session(deployment)
    assert start_session(make_deployment(tenant), resume_token=first.resume_token).session_id != first.session_id


def test_resume_token_is_kept_as_a_hash_only(deployment: Any) -> None:
    started = start_session(deployment)
    with tenant_scope(deployment.tenant_id):
        row = ChatSession.objects.get(pk=started.session_id)
    assert started.resume_token not in str(vars(row))
