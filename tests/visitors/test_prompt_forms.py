"""Is a form filled in as it was asked, once, by whom it was put to, and read on like the visitor's words?"""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.db import IntegrityError, transaction
from django.test import Client
from pydantic import ValidationError

from apps.access import tokens
from apps.audit.models import AuditEntry
from apps.bus.queries import pending_count
from apps.sessions.queries import said_until, thread
from apps.sessions.rules import frame_of
from apps.visitors import forgetting, prompt_forms, prompts
from apps.visitors.models import VisitorCard
from apps.visitors.prompt_forms import FormWanted
from kernel.errors import SilasError
from kernel.tenancy import in_scope, in_thread, tenant_scope
from llm.offline import phrases
from tests.factories.sessions import make_session, say, served, visitor_of
from tests.factories.tenants import make_deployment
from tests.visitors.asked import Asked, ask

FIELDS = [
    {"name": "order", "label": "Order number", "kind": "number", "required": True},
    {"name": "mail", "label": "Where to write to", "kind": "email"},
    {"name": "day", "label": "When it was bought", "kind": "date"},
    {"name": "way", "label": "How to send it back", "kind": "choice", "choices": ["Post", "Shop"]},
    {"name": "why", "label": "What is wrong", "kind": "text"},
]
GOOD = {"order": "1234", "mail": "maria@example.com", "day": "2026-02-01", "way": "Shop", "why": "It is  broken"}


def _form(**fields: Any) -> FormWanted:
    return FormWanted.model_validate({"question": "About your return", "fields": FIELDS, **fields})


@pytest.fixture
def asked(deployment: Any) -> Asked:
    return ask(deployment, _form())


def _fill(here: Asked, given: dict[str, str] | None = None) -> Any:
    visitor = visitor_of(here.deployment, here.session.pk)
    return here.do(prompts.fill, visitor, here.card.pk, GOOD if given is None else given)


def _problems(here: Asked, given: dict[str, str]) -> dict[str, str]:
    with pytest.raises(SilasError) as refused:
        _fill(here, given)
    assert refused.value.code == "invalid_answers"
    assert refused.value.status == 400
    return dict(refused.value.extra["fields"])


# -- what a form is ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "bad",
    [
        {"fields": []},
        {"fields": [FIELDS[0] | {"name": f"f{n}", "label": str(n)} for n in range(9)]},
        {"fields": [FIELDS[0], FIELDS[0]]},
        {"fields": [{"name": "a", "label": "A", "kind": "choice", "choices": ["One"]}]},
        {"fields": [{"name": "a", "label": "A", "kind": "choice", "choices": ["One", "One"]}]},
        {"fields": [{"name": "a", "label": "A", "kind": "text", "choices": ["One", "Two"]}]},
        {"fields": [{"name": "a", "label": "A", "kind": "file"}]},
        {"fields": [{"name": "a b", "label": "A"}]},
        {"fields": [{"name": "a", "label": "Pay \u202eevil"}]},
        {"question": ""},
        {"risk_level": "high"},
    ],
)
def test_form_that_is_none_is_refused(bad: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        _form(**bad)


# -- what fits --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "value", "problem"),
    [
        ("order", "", "required"),
        ("order", "12,5", "number"),
        ("order", "1e9", "number"),
        ("order", "\u0661\u0662", "number"),
        ("mail", "maria", "email"),
        ("mail", "a@b.c" + "d" * 300, "too_long"),
        ("day", "2026-02-30", "date"),
        ("day", "20260201", "date"),
        ("day", "0001-01-01", "date"),
        ("way", "Courier", "choice"),
        ("why", "x" * 401, "too_long"),
        ("why", "Send \u202eevil", "not_shown"),
        ("why", "nul\0", "not_shown"),
    ],
)
def test_answer_that_does_not_fit_is_told_at_its_field(asked: Asked, name: str, value: str, problem: str) -> None:
    assert _problems(asked, GOOD | {name: value}) == {name: problem}
    assert asked.do(VisitorCard.objects.get).status == "open"


def test_answers_to_what_was_not_asked_are_refused(asked: Asked) -> None:
    assert _problems(asked, GOOD | {"level": "verified"}) == {}


def test_form_without_a_single_answer_is_refused(deployment: Any) -> None:
    assert _problems(ask(deployment, _form(fields=FIELDS[1:])), {}) == {"mail": "required"}


def test_fields_that_need_not_be_filled_in_may_stay_empty(asked: Asked) -> None:
    _fill(asked, {"order": "1234"})
    assert asked.do(VisitorCard.objects.get).answers == {"order": "1234"}


# -- what an answer is ------------------------------------------------------------------------------------------------


def test_answers_are_a_decision_in_the_visitors_words(asked: Asked) -> None:
    _fill(asked)
    entry = asked.entries[-1]
    assert entry.text.splitlines()[0] == "Order number: 1234"
    assert entry.text.endswith("What is wrong: It is broken")
    frame = frame_of(entry)
    assert frame["type"] == "decision"
    assert frame["sender"] == "visitor"
    assert frame["answers"]["why"] == "It is broken"


def test_same_answers_sent_twice_count_once(asked: Asked) -> None:
    _fill(asked)
    assert _fill(asked).repeated
    assert len(asked.entries) == 2


def test_other_answers_after_the_first_are_refused(asked: Asked) -> None:
    _fill(asked)
    with pytest.raises(SilasError) as refused:
        _fill(asked, GOOD | {"order": "99"})
    assert refused.value.code == "card_decided"


def test_form_is_not_answered_like_a_question(asked: Asked) -> None:
    assert asked.refusal("send") == "not_found"


def test_filled_in_form_is_owed_a_turn(asked: Asked) -> None:
    _fill(asked)
    assert asked.do(pending_count, "proxy", asked.session.pk) == 1


async def test_models_read_what_was_filled_in_once_the_gates_let_it(deployment: Any) -> None:
    here = await in_thread(ask, deployment, _form())
    await in_thread(_fill, here)
    before = await in_scope(here.session.tenant_id, lambda: said_until(here.session.pk, 2, limit=9).value)
    await served(here.session)
    said = await in_scope(here.session.tenant_id, lambda: said_until(here.session.pk, 2, limit=9).value)
    assert "1234" not in before[-1].shown
    assert "Order number: 1234" in said[-1].shown


async def test_filled_in_form_is_thanked_for(deployment: Any) -> None:
    here = await in_thread(ask, deployment, _form())
    await in_thread(_fill, here)
    await served(here.session)
    entries = await in_thread(lambda: here.entries)
    assert [entry.text for entry in entries if entry.sender == "bot"][-1] == phrases.FORM_RECEIVED


async def test_words_that_look_like_a_form_are_not_thanked_for(deployment: Any) -> None:
    session = await in_thread(make_session, deployment)
    await in_thread(say, session, "Order number: 1234\nWhat is wrong: It is broken")
    await served(session)
    entries = await in_scope(session.tenant_id, lambda: thread(session.pk))
    assert phrases.FORM_RECEIVED not in [entry.text for entry in entries]


def test_log_of_a_form_holds_no_answers(asked: Asked) -> None:
    _fill(asked)
    entries = asked.do(lambda: [json.loads(row.data) for row in AuditEntry.objects.filter(event="visitor_decided")])
    assert [sorted(entry) for entry in entries] == [["card", "seq"]]


def test_answers_stand_with_forms_alone(deployment: Any) -> None:
    here = ask(deployment)
    with tenant_scope(here.session.tenant_id), pytest.raises(IntegrityError), transaction.atomic():
        VisitorCard.objects.filter(pk=here.card.pk).update(answers={"a": "b"})


def test_forgotten_visitor_leaves_no_answers(asked: Asked, agent: Any) -> None:
    _fill(asked)
    asked.do(forgetting.forget_visitor, asked.session.pk, agent)
    assert asked.do(prompts.filled_in, asked.session.pk) == []


# -- over HTTP --------------------------------------------------------------------------------------------------------


def _post(client: Client, here: Asked, answers: Any = GOOD, *, token: str | None = None, key: str = "") -> Any:
    mine = tokens.mint(visitor_of(here.deployment, here.session.pk))
    return client.post(
        f"/api/v1/widget/{key or here.deployment.public_key}/cards/{here.card.pk}",
        {"answers": answers},
        content_type="application/json",
        headers={"Authorization": f"Bearer {mine if token is None else token}"},
    )


def test_form_over_http_is_filled_in_without_a_socket(client: Client, asked: Asked) -> None:
    assert [_post(client, asked).json() for _ in range(2)] == [
        {"seq": 2, "repeated": False},
        {"seq": 2, "repeated": True},
    ]


def test_form_over_http_says_what_is_wrong_at_each_field(client: Client, asked: Asked) -> None:
    answer = _post(client, asked, {"order": "x", "mail": "y"})
    assert answer.status_code == 400
    assert answer.json()["error"]["extra"]["fields"] == {"order": "number", "mail": "email"}


@pytest.mark.parametrize("answers", [[], "x", {"order": {"a": 1}}, {"order": "x" * 1001}])
def test_form_over_http_of_another_shape_is_400(client: Client, asked: Asked, answers: Any) -> None:
    assert _post(client, asked, answers).status_code == 400


def test_form_of_another_visitor_is_not_found(client: Client, asked: Asked) -> None:
    other = tokens.mint(visitor_of(asked.deployment, make_session(asked.deployment).pk))
    assert _post(client, asked, token=other).status_code == 404


def test_form_of_another_tenants_visitor_is_not_found(client: Client, asked: Asked, other_tenant: Any) -> None:
    theirs = make_deployment(other_tenant)
    token = tokens.mint(visitor_of(theirs, make_session(theirs).pk))
    assert _post(client, asked, token=token, key=theirs.public_key).status_code == 404


@pytest.mark.parametrize("token", ["", "forged"])
def test_form_without_a_token_is_refused(client: Client, asked: Asked, token: str) -> None:
    assert _post(client, asked, token=token).status_code == 401


def test_labels_and_answers_are_told_in_the_order_of_the_form() -> None:
    told = prompt_forms.told(_form().fields, {"way": "Post", "order": "1"})
    assert told == [("Order number", "1"), ("How to send it back", "Post")]
