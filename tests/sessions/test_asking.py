"""What may a visitor answer? Only what was put to them, here, once, in time; and it is never a yes that staff gives."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import psycopg
import pytest
import time_machine
from django.db import IntegrityError, connection, transaction
from django.test import Client

from apps.approvals.enums import CardKind
from apps.approvals.models import ApprovalToken, Card, Decision
from apps.audit.models import AuditEntry
from apps.bus.models import QueueMessage
from apps.bus.services import pending_count
from apps.sessions import asking, handoff, tokens
from apps.sessions.asked import VisitorCard
from apps.sessions.asking import Question, SecretWanted
from apps.sessions.models import ChatSession, ChronicleEntry
from apps.sessions.queries import session_for_turn
from apps.sessions.rules import frame_of
from apps.tenants.services import create_api_key
from kernel.clock import now
from kernel.errors import NotFound, SilasError
from kernel.tenancy import in_scope, in_thread, tenant_scope
from tests.factories.cards import make_kind
from tests.factories.memories import give, verified
from tests.factories.sessions import make_session, served, visitor_of
from tests.factories.tenants import make_deployment, make_member

OPTIONS = [{"value": "send", "label": "Send it to me"}, {"value": "keep", "label": "Keep it here"}]
SECRET = "correct horse battery staple"


def _question(**fields: Any) -> Question:
    return Question.model_validate({"question": "Where shall it go?", "options": OPTIONS, **fields})


def _wanted() -> SecretWanted:
    return SecretWanted.model_validate({"label": "Your PIN", "guidance": {"instructions": "Six digits."}})


@dataclass
class Asked:
    """A visitor who was asked something."""

    deployment: Any
    session: ChatSession
    card: VisitorCard

    def do(self, fn: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        with tenant_scope(self.session.tenant_id):
            return fn(*args, **kwargs)

    def answer(self, value: str = "send", *, session: ChatSession | None = None, **fields: Any) -> Any:
        visitor = visitor_of(self.deployment, (session or self.session).pk)
        return self.do(asking.answer, visitor, self.card.pk, value=value, **fields)

    def refusal(self, value: str = "send", **fields: Any) -> str:
        with pytest.raises(SilasError) as refused:
            self.answer(value, **fields)
        return refused.value.code

    @property
    def entries(self) -> list[ChronicleEntry]:
        rows: list[ChronicleEntry] = self.do(lambda: list(ChronicleEntry.objects.filter(session=self.session)))
        return rows


def _ask(deployment: Any, asked: Any = None, *, session: ChatSession | None = None, **fields: Any) -> Asked:
    session = session or make_session(deployment)
    with tenant_scope(session.tenant_id):
        card = asking.ask_visitor(session.pk, asked or _question(**fields), actor="api_key:test")
    return Asked(deployment, session, card)


@pytest.fixture
def asked(deployment: Any) -> Asked:
    return _ask(deployment)


@pytest.fixture
def wanted(deployment: Any) -> Asked:
    return _ask(deployment, _wanted())


# -- who may not ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("who", ["viewer", "stranger"])
def test_question_of_somebody_without_the_role_is_refused(deployment: Any, who: str, request: Any) -> None:
    session, user = make_session(deployment), request.getfixturevalue(who)
    with tenant_scope(session.tenant_id), pytest.raises(SilasError) as refused:
        asking.ask_visitor(session.pk, _question(), actor="user:x", user=user)
    assert refused.value.code == "forbidden_role"


def test_question_from_another_tenant_is_not_found(deployment: Any, other_tenant: Any) -> None:
    session, owner = make_session(deployment), make_member(other_tenant, "owner")
    with tenant_scope(other_tenant), pytest.raises(NotFound):
        asking.ask_visitor(session.pk, _question(), actor="user:x", user=owner)


def test_question_while_a_colleague_answers_is_refused(deployment: Any, agent: Any, owner: Any) -> None:
    session = make_session(deployment)
    with tenant_scope(session.tenant_id):
        handoff.take_over(session.pk, agent)
        with pytest.raises(SilasError) as refused:
            asking.ask_visitor(session.pk, _question(), actor="user:x", user=owner)
    assert refused.value.code == "owned_by_other"


def test_question_when_too_many_wait_is_refused(deployment: Any) -> None:
    session = make_session(deployment)
    for _ in range(asking.OPEN_AT_MOST):
        _ask(deployment, session=session)
    with pytest.raises(SilasError) as refused:
        _ask(deployment, session=session)
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
        _question(**bad)


# -- who may not answer -----------------------------------------------------------------------------------------------


def test_answer_of_another_visitor_is_not_found(asked: Asked) -> None:
    assert asked.refusal(session=make_session(asked.deployment)) == "not_found"


def test_answer_from_another_tenant_is_not_found(asked: Asked, other_tenant: Any) -> None:
    theirs = make_deployment(other_tenant)
    visitor = visitor_of(theirs, asked.session.pk)
    with tenant_scope(other_tenant), pytest.raises(NotFound):
        asking.answer(visitor, asked.card.pk, value="send")


def test_answer_to_a_card_of_staff_is_not_found_and_approves_nothing(deployment: Any) -> None:
    """The one thing that must never be: a visitor's press as a yes of the house."""
    here = _ask(deployment)
    with tenant_scope(here.session.tenant_id):
        staff = make_kind(deployment.tenant, CardKind.PLAN, session_id=here.session.pk)
        with pytest.raises(NotFound):
            asking.answer(visitor_of(deployment, here.session.pk), staff.pk, value="approve")
        assert (Card.objects.get(pk=staff.pk).status, ApprovalToken.objects.count()) == ("open", 0)


def test_answer_mints_no_yes_and_is_no_decision_of_staff(asked: Asked) -> None:
    asked.answer()
    assert asked.do(lambda: (ApprovalToken.objects.count(), Decision.objects.count())) == (0, 0)


def test_answer_once_the_level_has_ended_is_refused(deployment: Any) -> None:
    session = make_session(deployment)
    with tenant_scope(session.tenant_id):
        give(session, verified("C-1", seconds=60))
    here = _ask(deployment, session=session)
    with time_machine.travel(now() + timedelta(seconds=61)):
        assert here.refusal() == "card_not_yours"


def test_answer_after_its_time_changes_nothing(deployment: Any) -> None:
    here = _ask(deployment, seconds=30)
    with time_machine.travel(now() + timedelta(seconds=31)):
        assert here.refusal() == "card_expired"
    assert here.do(here.card.refresh_from_db) is None
    assert here.card.status == "open"


def test_answer_to_what_was_taken_back_is_refused(asked: Asked) -> None:
    asked.do(asking.withdraw, asked.card.pk, asked.session.pk, actor="api_key:test")
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
    here = _ask(deployment, allow_freetext=True)
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
    asked = await in_thread(_ask, deployment)
    await in_thread(asked.answer)
    await served(asked.session)
    _, said = await in_scope(asked.session.tenant_id, session_for_turn, asked.session.pk, until_seq=2, limit=9)
    assert [(each.sender, each.shown) for each in said] == [("bot", "Where shall it go?"), ("visitor", "Send it to me")]


def test_log_of_an_answer_holds_no_words(asked: Asked) -> None:
    asked.answer()
    entries = asked.do(lambda: list(AuditEntry.objects.filter(event__startswith="visitor_").order_by("seq")))
    told = [json.loads(entry.data) for entry in entries]
    assert [sorted(data) for data in told] == [["card", "kind", "risk"], ["card", "seq"]]


# -- secrets ----------------------------------------------------------------------------------------------------------


def _post(
    client: Client, here: Asked, value: Any = SECRET, *, token: str | None = None, ref: UUID | None = None
) -> Any:
    mine = tokens.mint(visitor_of(here.deployment, here.session.pk))
    return client.post(
        f"/secrets/{ref or here.card.pk}",
        {"value": value},
        content_type="application/json",
        headers={"Authorization": f"Bearer {mine if token is None else token}"},
    )


def _everything(dsn: str) -> str:
    """All rows of all tables, as text."""
    with psycopg.connect(dsn) as rows:
        names = [name for (name,) in rows.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")]
        return "".join(str(rows.execute(f'SELECT t::text FROM "{name}" t').fetchall()) for name in names)


@pytest.mark.parametrize("token", ["", "forged", "sk_1234"])
def test_secret_without_a_session_is_refused(client: Client, wanted: Asked, token: str) -> None:
    assert _post(client, wanted, token=token).status_code == 401


def test_secret_of_another_visitor_is_not_found(client: Client, wanted: Asked) -> None:
    other = tokens.mint(visitor_of(wanted.deployment, make_session(wanted.deployment).pk))
    assert _post(client, wanted, token=other).status_code == 404


def test_secret_of_another_tenants_visitor_is_not_found(client: Client, wanted: Asked, other_tenant: Any) -> None:
    theirs = make_deployment(other_tenant)
    other = tokens.mint(visitor_of(theirs, make_session(theirs).pk))
    assert _post(client, wanted, token=other).status_code == 404


@pytest.mark.parametrize("which", ["unknown", "a question"])
def test_secret_that_nobody_asked_for_is_not_found(client: Client, wanted: Asked, which: str) -> None:
    ref = uuid4() if which == "unknown" else _ask(wanted.deployment, session=wanted.session).card.pk
    assert _post(client, wanted, ref=ref).status_code == 404


@pytest.mark.parametrize("value", ["", "x" * 4001, None, {"a": 1}])
def test_secret_that_is_none_is_refused_without_an_echo(client: Client, wanted: Asked, value: Any) -> None:
    response = _post(client, wanted, value)
    assert response.status_code == 400
    assert "xxx" not in response.content.decode()


def test_secret_is_stored_and_nothing_of_it_answered(client: Client, wanted: Asked) -> None:
    response = _post(client, wanted)
    assert (response.status_code, response.json()) == (200, {"stored": True})


def test_secret_given_twice_is_refused(client: Client, wanted: Asked) -> None:
    _post(client, wanted)
    assert _post(client, wanted, "another").status_code == 409


def test_secret_stands_in_no_row_as_it_was_given(
    client: Client, wanted: Asked, superuser_dsn: str, caplog: pytest.LogCaptureFixture
) -> None:
    _post(client, wanted)
    rows = _everything(superuser_dsn)
    assert SECRET not in rows and SECRET.encode().hex() not in rows
    assert SECRET not in caplog.text


def test_secret_that_was_given_is_told_to_the_widget_without_it(client: Client, wanted: Asked) -> None:
    _post(client, wanted)
    frame = frame_of(wanted.entries[-1])
    assert (frame["type"], frame["ref_id"], frame["success"]) == ("secure_input_completed", str(wanted.card.pk), True)


def test_secret_is_taken_once(client: Client, wanted: Asked) -> None:
    _post(client, wanted)
    take = lambda: wanted.do(asking.take_secret, wanted.card.pk, wanted.session.pk, actor="api_key:test")  # noqa: E731
    assert take() == SECRET
    with pytest.raises(SilasError) as refused:
        take()
    assert refused.value.code == "secret_not_there"


def test_sealed_value_of_a_question_is_refused_by_the_database(asked: Asked) -> None:
    with tenant_scope(asked.session.tenant_id), pytest.raises(IntegrityError), transaction.atomic():
        VisitorCard.objects.filter(pk=asked.card.pk).update(sealed=b"x")


# -- over HTTP, as a tenant's own system ------------------------------------------------------------------------------


@pytest.fixture
def key(deployment: Any) -> str:
    with tenant_scope(deployment.tenant_id):
        return str(create_api_key("Test").key)


def _ask_over_http(client: Client, session: ChatSession, key: str, **fields: Any) -> Any:
    body = {"kind": "decision", "question": "Where shall it go?", "options": OPTIONS, **fields}
    address = f"/api/v1/sessions/{session.pk}/cards"
    return client.post(address, body, content_type="application/json", headers={"Authorization": f"Bearer {key}"})


def test_question_over_http_without_a_key_is_refused(client: Client, deployment: Any) -> None:
    assert _ask_over_http(client, make_session(deployment), "sk_nothing").status_code == 401


def test_question_over_http_to_another_tenants_visitor_is_not_found(
    client: Client, deployment: Any, other_tenant: Any, key: str
) -> None:
    theirs = make_session(make_deployment(other_tenant))
    assert _ask_over_http(client, theirs, key).status_code == 404


@pytest.mark.parametrize("field", [{"options": [{"value": "a"}]}, {"question": ""}, {"seconds": 1}, {"label": "x"}])
def test_question_over_http_that_does_not_fit_is_400(
    client: Client, deployment: Any, key: str, field: dict[str, Any]
) -> None:
    assert _ask_over_http(client, make_session(deployment), key, **field).status_code == 400


def test_question_over_http_tells_later_what_was_chosen(client: Client, deployment: Any, key: str) -> None:
    session = make_session(deployment)
    made = _ask_over_http(client, session, key).json()
    with tenant_scope(session.tenant_id):
        asking.answer(visitor_of(deployment, session.pk), made["id"], value="keep")
    address = f"/api/v1/sessions/{session.pk}/cards/{made['id']}"
    seen = client.get(address, headers={"Authorization": f"Bearer {key}"}).json()
    assert (made["state"], seen["state"], seen["chosen"]) == ("open", "answered", "keep")


def test_secret_over_http_is_taken_by_its_tenant_alone(
    client: Client, wanted: Asked, other_tenant: Any, key: str
) -> None:
    _post(client, wanted)
    with tenant_scope(other_tenant):
        theirs = str(create_api_key("Theirs").key)
    address = f"/api/v1/sessions/{wanted.session.pk}/cards/{wanted.card.pk}/secret"
    answers = [client.post(address, headers={"Authorization": f"Bearer {each}"}) for each in (theirs, key)]
    assert [answer.status_code for answer in answers] == [404, 200]
    assert answers[1].json() == {"value": SECRET}
