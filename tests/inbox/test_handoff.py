"""Does the bot fall silent from the commit in which a person took over?"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import pytest
import time_machine

from apps.approvals import queries as cards
from apps.approvals.enums import CardKind
from apps.bus.queries import pending_count
from apps.inbox import handoff
from apps.sessions import person_wanted
from apps.sessions.locks import lock_session
from apps.sessions.models import ChatSession
from apps.sessions.queries import chronicle_after
from apps.sessions.services import start_session
from apps.sessions.turn import open_turn
from kernel.errors import NotFound, SilasError
from kernel.tenancy import in_scope, in_thread, tenant_scope
from tests.factories.cards import make_kind
from tests.factories.pauses import asking_gate, converse, gate_card, gated
from tests.factories.sessions import make_session, say, served
from tests.factories.work import make_desk


def _take_over(session: ChatSession, user: Any) -> ChatSession:
    with tenant_scope(session.tenant_id):
        return handoff.take_over(session.pk, user)


def test_take_over_tells_the_visitor_who_answers(deployment: Any, agent: Any) -> None:
    session = make_session(deployment)
    _take_over(session, agent)
    with tenant_scope(session.tenant_id):
        (entry,) = chronicle_after(session.pk, 0)
    assert entry.kind == "owner"
    assert entry.payload["owner"] == "human"
    assert entry.payload["name"] == agent.display_name


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


@pytest.mark.parametrize("first", ["take_over", "say"])
async def test_message_that_a_person_answers_is_owed_a_look_of_the_gates_and_no_answer(
    deployment: Any, agent: Any, first: str
) -> None:
    session = await in_thread(make_session, deployment)
    steps = {"take_over": partial(_take_over, session, agent), "say": partial(say, session, "hello")}
    for step in sorted(steps, key=lambda name: name != first):
        await in_thread(steps[step])
    await served(session)
    said = await in_scope(session.tenant_id, chronicle_after, session.pk, 0)
    left = await in_scope(session.tenant_id, pending_count, "proxy", session.pk)
    assert {entry.sender for entry in said} == {"visitor", "system"}
    assert left == 0


def test_reply_without_take_over_is_refused(deployment: Any, agent: Any) -> None:
    session = make_session(deployment)
    with tenant_scope(session.tenant_id), pytest.raises(SilasError, match="Take over the conversation"):
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
    say(session, "hello")
    with tenant_scope(session.tenant_id):
        opened = open_turn(session.pk, consumer="test")
    assert opened is not None and not opened.overheard


def test_visitor_who_wants_a_person_again_waits_in_no_queue_of_before(deployment: Any, agent: Any) -> None:
    session = make_session(deployment)
    with tenant_scope(session.tenant_id):
        person_wanted.want_person(lock_session(session.pk), queue="second_line", because="gate:toxicity_in")
        handoff.take_over(session.pk, agent)
        handoff.hand_back(session.pk, agent)
        person_wanted.want_person(lock_session(session.pk), because="asked")
        found = ChatSession.objects.get(pk=session.pk)
    assert found.wanted_queue == ""
    assert found.wanted_because == "asked"


def test_take_over_ends_what_a_running_turn_asks(deployment: Any, agent: Any) -> None:
    """The turn says nothing more, so nobody waits for that answer."""
    session = gated(deployment, asking_gate("every_user_message"))
    converse(session, "Hello")
    card = gate_card(deployment.tenant)
    _take_over(session, agent)
    with tenant_scope(session.tenant_id):
        found = cards.get_card(card.pk)
    assert found.status == "withdrawn"
    assert found.withdrawal == "handoff"


def test_take_over_that_is_refused_ends_no_question(deployment: Any, agent: Any, owner: Any) -> None:
    session = make_session(deployment)
    _take_over(session, agent)
    card = make_kind(deployment.tenant, CardKind.PLAN, session_id=session.pk)
    with pytest.raises(SilasError):
        _take_over(session, owner)
    with tenant_scope(session.tenant_id):
        assert cards.get_card(card.pk).is_open


def test_take_over_keeps_the_promise_that_the_visitor_waits_for(
    tenant: Any, tmp_path: Path, agent: Any, approver: Any
) -> None:
    """Whoever answers now: the visitor still wants it, a colleague still decides, and it is carried out."""
    desk = make_desk(tenant, tmp_path)
    item = desk.waiting()
    with tenant_scope(tenant):
        assert item.session_id
        handoff.take_over(item.session_id, agent)
    desk.decide(item, approver)
    desk.work()
    assert desk.item(item.pk).status == "done"
    assert desk.order().data["note"] == 50


# --- outside of the opening hours


SUNDAY, MONDAY = "2026-11-22T10:00:00+00:00", "2026-11-23T10:00:00+00:00"
HOURS = {"mon": "09:00-17:00"}


def _told(deployment: Any, at: str, **fields: Any) -> list[str]:
    """What a visitor reads who wants a person at this moment, and asks twice."""
    with tenant_scope(deployment.tenant_id):
        for name, value in fields.items():
            setattr(deployment, name, value)
        deployment.save()
    session = make_session(deployment)
    with time_machine.travel(at, tick=False), tenant_scope(session.tenant_id):
        for _ in range(2):
            person_wanted.want_person(lock_session(session.pk))
    with tenant_scope(session.tenant_id):
        return [entry.text for entry in chronicle_after(session.pk, 0)]


def test_visitor_who_wants_a_person_on_a_sunday_reads_when_somebody_is_back_once(deployment: Any) -> None:
    assert _told(deployment, SUNDAY, opening_hours=HOURS) == [
        f"{person_wanted.CLOSED} We'll be back Monday at 09:00 (Europe/London)."
    ]


def test_hours_are_those_of_the_deployments_own_zone(deployment: Any) -> None:
    assert "at 09:00 (Asia/Tokyo)" in _told(deployment, SUNDAY, opening_hours=HOURS, timezone="Asia/Tokyo")[0]


def test_visitor_reads_it_in_the_language_of_their_browser(deployment: Any) -> None:
    session = start_session(deployment, locale="de-CH").session_id
    with tenant_scope(deployment.tenant_id):
        deployment.opening_hours = HOURS
        deployment.save()
    with time_machine.travel(SUNDAY, tick=False), tenant_scope(deployment.tenant_id):
        person_wanted.want_person(lock_session(session))
    with tenant_scope(deployment.tenant_id):
        (entry,) = chronicle_after(session, 0)
    assert entry.text.endswith("Wir sind am Montag um 09:00 Uhr wieder da (Europe/London).")


def test_company_says_it_in_its_own_words(deployment: Any) -> None:
    (told,) = _told(deployment, SUNDAY, opening_hours=HOURS, after_hours="We are at sea.")
    assert told.startswith("We are at sea. We'll be back Monday")


@pytest.mark.parametrize(("at", "hours"), [(MONDAY, HOURS), (SUNDAY, {})])
def test_visitor_who_wants_a_person_while_somebody_is_there_reads_nothing_more(
    deployment: Any, at: str, hours: dict[str, str]
) -> None:
    assert _told(deployment, at, opening_hours=hours) == []
