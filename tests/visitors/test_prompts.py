"""A visitor answers only what was put to them, here, once and in time, and it is never an approval by staff."""

from __future__ import annotations

import json
import threading
from datetime import timedelta
from typing import Any

import pytest
import time_machine
from django.db import connection

from apps.approvals.enums import CardKind
from apps.approvals.models import ApprovalToken, Card, Decision
from apps.audit.models import AuditEntry
from apps.bus.models import QueueMessage
from apps.bus.queries import pending_count
from apps.inbox import handoff
from apps.sessions.queries import said_until
from apps.sessions.rules import frame_of
from apps.visitors import prompts
from kernel.clock import now
from kernel.errors import NotFound, SilasError
from kernel.tenancy import in_scope, in_thread, tenant_scope
from tests.factories.cards import make_kind
from tests.factories.memories import give, verified
from tests.factories.sessions import make_session, served, visitor_of
from tests.factories.tenants import make_deployment, make_member
from tests.visitors.asked import Asked, ask, question


@pytest.fixture
def asked(deployment: Any) -> Asked:
    return ask(deployment)


# -- who may not ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("who", ["viewer", "stranger"])
def test_question_of_somebody_without_the_role_is_refused(deployment: Any, who: str, request: Any) -> None:
    session, user = make_session(deployment), request.getfixturevalue(who)
    with tenant_scope(session.tenant_id), pytest.raises(SilasError) as refused:
        prompts.ask_visitor(session.pk, question(), actor="user:x", user=user)
    assert refused.value.code == "forbidden_role"


def test_question_from_another_tenant_is_not_found(deployment: Any, other_tenant: Any) -> None:
    session, owner = make_session(deployment), make_member(other_tenant, "owner")
    with tenant_scope(other_tenant), pytest.raises(NotFound):
        prompts.ask_visitor(session.pk, question(), actor="user:x", user=owner)


def test_question_while_a_colleague_answers_is_refused(deployment: Any, agent: Any, owner: Any) -> None:
    session = make_session(deployment)
    with tenant_scope(session.tenant_id):
        handoff.take_over(session.pk, agent)
        with pytest.raises(SilasError) as refused:
            prompts.ask_visitor(session.pk, question(), actor="user:x", user=owner)
    assert refused.value.code == "owned_by_other"


def test_question_when_too_many_wait_is_refused(deployment: Any) -> None:
    session = make_session(deployment)
    for _ in range(prompts.OPEN_AT_MOST):
        ask(deployment, session=session)
    with pytest.raises(SilasError) as refused:
        ask(deployment, session=session)
    assert refused.value.code == "too_many_questions"


@pytest.mark.parametrize(
    "bad",
    [
        {"risk_level": "irreversible"},
        {"options": []},
        {"options": [{"value": "approve", "label": "Approve"}]},
        {"options": [{"value": "a", "label": "A"}, {"value": "a", "label": "B"}]},
        {"question": "Send it to \u202eevil"},
        {"approval_tier": "slide"},
    ],
)
def test_question_that_is_none_is_refused(bad: dict[str, Any]) -> None:
    with pytest.raises(ValueError):
        question(**bad)


# -- who may not answer -----------------------------------------------------------------------------------------------


def test_answer_of_another_visitor_is_not_found(asked: Asked) -> None:
    assert asked.refusal(session=make_session(asked.deployment)) == "not_found"


def test_answer_from_another_tenant_is_not_found(asked: Asked, other_tenant: Any) -> None:
    theirs = make_deployment(other_tenant)
    visitor = visitor_of(theirs, asked.session.pk)
    with tenant_scope(other_tenant), pytest.raises(NotFound):
        prompts.answer(visitor, asked.card.pk, value="send")


def test_answer_to_a_card_of_staff_is_not_found_and_approves_nothing(deployment: Any) -> None:
    """The one thing that must never be: a visitor's press as an approval by staff."""
    here = ask(deployment)
    with tenant_scope(here.session.tenant_id):
        staff = make_kind(deployment.tenant, CardKind.PLAN, session_id=here.session.pk)
        with pytest.raises(NotFound):
            prompts.answer(visitor_of(deployment, here.session.pk), staff.pk, value="approve")
        assert Card.objects.get(pk=staff.pk).status == "open"
        assert ApprovalToken.objects.count() == 0


def test_answer_mints_no_approval_and_is_no_decision_of_staff(asked: Asked) -> None:
    asked.answer()
    assert asked.do(lambda: (ApprovalToken.objects.count(), Decision.objects.count())) == (0, 0)


def test_answer_once_the_level_has_ended_is_refused(deployment: Any) -> None:
    session = make_session(deployment)
    with tenant_scope(session.tenant_id):
        give(session, verified("C-1", seconds=60))
    here = ask(deployment, session=session)
    with time_machine.travel(now() + timedelta(seconds=61)):
        assert here.refusal() == "card_not_yours"


def test_answer_after_its_time_changes_nothing(deployment: Any) -> None:
    here = ask(deployment, seconds=30)
    with time_machine.travel(now() + timedelta(seconds=31)):
        assert here.refusal() == "card_expired"
    assert here.do(here.card.refresh_from_db) is None
    assert here.card.status == "open"


def test_answer_to_what_was_taken_back_is_refused(asked: Asked) -> None:
    asked.do(prompts.withdraw, asked.card.pk, asked.session.pk, actor="api_key:test")
    assert asked.refusal() == "card_withdrawn"


@pytest.mark.parametrize("value", ["approve", "decline", "SEND", "send "])
def test_answer_that_the_card_does_not_offer_is_refused(asked: Asked, value: str) -> None:
    assert asked.refusal(value) == "choice_unknown"


def test_words_where_the_card_takes_none_are_refused(asked: Asked) -> None:
    assert asked.refusal("", words="Do something else") == "freetext_not_wanted"


def test_other_answer_after_the_first_is_refused(asked: Asked) -> None:
    asked.answer("send")
    assert asked.refusal("keep") == "card_decided"


# -- what an answer is ------------------------------------------------------------------------------------------------


def test_answer_is_a_decision_with_the_visitor_as_sender(asked: Asked) -> None:
    asked.answer()
    frame = frame_of(asked.entries[-1])
    assert {name: frame[name] for name in ("type", "sender", "request_id", "selected_value", "label", "status")} == {
        "type": "decision",
        "sender": "visitor",
        "request_id": str(asked.card.pk),
        "selected_value": "send",
        "label": "Send it to me",
        "status": "answered",
    }


def test_same_answer_sent_twice_counts_once(asked: Asked) -> None:
    asked.answer()
    assert asked.answer().repeated
    assert [entry.sender for entry in asked.entries] == ["bot", "visitor"]


def test_rivals_of_two_windows_make_one_answer(asked: Asked) -> None:
    codes: list[str] = []

    def rival(value: str) -> None:
        try:
            asked.answer(value)
            codes.append("stored")
        except SilasError as error:
            codes.append(error.code)
        finally:
            connection.close()

    threads = [threading.Thread(target=rival, args=(value,)) for value in ("send", "keep")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(codes) == ["card_decided", "stored"]


def test_answer_in_own_words_is_kept_as_said(deployment: Any) -> None:
    here = ask(deployment, allow_freetext=True)
    here.answer("", words="  To my office, please. ")
    assert here.entries[-1].text == "To my office, please."


def test_answer_is_owed_a_turn(asked: Asked) -> None:
    asked.answer()
    assert asked.do(pending_count, "proxy", asked.session.pk) == 1


def test_answer_to_a_person_is_owed_a_look_of_the_gates_alone(asked: Asked, agent: Any) -> None:
    asked.do(handoff.take_over, asked.session.pk, agent)
    asked.answer()
    row = asked.do(QueueMessage.objects.get)
    assert row.payload["overheard"] is True


async def test_models_read_the_question_and_the_answer(deployment: Any) -> None:
    asked = await in_thread(ask, deployment)
    await in_thread(asked.answer)
    await served(asked.session)
    said = await in_scope(asked.session.tenant_id, lambda: said_until(asked.session.pk, 2, limit=9).value)
    assert [(each.sender, each.shown) for each in said] == [("bot", "Where shall it go?"), ("visitor", "Send it to me")]


def test_log_of_an_answer_holds_no_words(asked: Asked) -> None:
    asked.answer()
    entries = asked.do(lambda: list(AuditEntry.objects.filter(event__startswith="visitor_").order_by("seq")))
    told = [json.loads(entry.data) for entry in entries]
    assert [sorted(data) for data in told] == [["card", "kind", "risk"], ["card", "seq"]]
