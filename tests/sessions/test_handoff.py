"""Does the bot fall silent from the commit in which a person took over?"""

from __future__ import annotations

from typing import Any

import pytest

from apps.bus.services import pending_count
from apps.sessions import handoff
from apps.sessions.models import ChatSession
from apps.sessions.queries import chronicle_after
from apps.sessions.turn import open_turn
from kernel.errors import NotFound, SilasError
from kernel.tenancy import tenant_scope
from tests.factories.sessions import make_session, say


def _take_over(session: ChatSession, user: Any) -> ChatSession:
    with tenant_scope(session.tenant_id):
        return handoff.take_over(session.pk, user)


def test_take_over_tells_the_visitor_who_answers(deployment: Any, agent: Any) -> None:
    session = make_session(deployment)
    _take_over(session, agent)
    with tenant_scope(session.tenant_id):
        (entry,) = chronicle_after(session.pk, 0)
    assert (entry.kind, entry.payload["owner"], entry.payload["name"]) == ("owner", "human", agent.display_name)


def test_take_over_twice_by_the_same_person_changes_nothing(deployment: Any, agent: Any) -> None:
    session = make_session(deployment)
    assert _take_over(session, agent).owner_epoch == _take_over(session, agent).owner_epoch


def test_take_over_of_a_colleagues_conversation_is_refused(deployment: Any, agent: Any, owner: Any) -> None:
    session = make_session(deployment)
    _take_over(session, agent)
    with pytest.raises(SilasError, match="colleague"):
        _take_over(session, owner)


@pytest.mark.parametrize("who", ["viewer", "stranger"])
def test_take_over_without_the_role_is_refused(deployment: Any, who: str, request: Any) -> None:
    with pytest.raises(SilasError) as refusal:
        _take_over(make_session(deployment), request.getfixturevalue(who))
    assert refusal.value.code == "forbidden_role"


def test_take_over_from_another_tenant_is_not_found(deployment: Any, other_tenant: Any) -> None:
    from tests.factories.tenants import make_member

    foreigner = make_member(other_tenant, "owner")
    session = make_session(deployment)
    with tenant_scope(other_tenant), pytest.raises(NotFound):
        handoff.take_over(session.pk, foreigner)


def test_message_after_take_over_is_not_owed_to_the_bot(deployment: Any, agent: Any) -> None:
    session = make_session(deployment)
    _take_over(session, agent)
    say(session, "hello")
    with tenant_scope(session.tenant_id):
        assert pending_count("proxy", session.pk) == 0


def test_turn_owed_before_take_over_is_dropped(deployment: Any, agent: Any) -> None:
    session = make_session(deployment)
    say(session, "hello")
    _take_over(session, agent)
    with tenant_scope(session.tenant_id):
        assert open_turn(session.pk, consumer="test") is None and pending_count("proxy", session.pk) == 0


def test_reply_without_take_over_is_refused(deployment: Any, agent: Any) -> None:
    session = make_session(deployment)
    with tenant_scope(session.tenant_id), pytest.raises(SilasError, match="Take the conversation over"):
        handoff.reply(session.pk, agent, "hello")


@pytest.mark.parametrize("text", ["", "   ", "x" * 4001, "a\0b"])
def test_reply_that_cannot_be_shown_is_refused(deployment: Any, agent: Any, text: str) -> None:
    session = make_session(deployment)
    _take_over(session, agent)
    with tenant_scope(session.tenant_id), pytest.raises(SilasError, match="characters"):
        handoff.reply(session.pk, agent, text)


def test_hand_back_lets_the_bot_answer_again(deployment: Any, agent: Any) -> None:
    session = make_session(deployment)
    _take_over(session, agent)
    with tenant_scope(session.tenant_id):
        handoff.hand_back(session.pk, agent)
    assert say(session, "hello").wakes_bot
