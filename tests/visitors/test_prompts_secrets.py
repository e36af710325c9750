"""Is what a visitor gives in secret given once, by them alone, and nowhere to be read?"""

from __future__ import annotations

from typing import Any
from uuid import UUID, uuid4

import psycopg
import pytest
from django.db import IntegrityError, transaction
from django.test import Client

from apps.access import tokens
from apps.sessions.rules import frame_of
from apps.tenants.services import create_api_key
from apps.visitors import prompts
from apps.visitors.models import VisitorCard
from kernel.errors import SilasError
from kernel.tenancy import tenant_scope
from tests.factories.sessions import make_session, visitor_of
from tests.factories.tenants import make_deployment
from tests.visitors.asked import Asked, ask, secret_wanted

SECRET = "correct horse battery staple"


@pytest.fixture
def wanted(deployment: Any) -> Asked:
    return ask(deployment, secret_wanted())


@pytest.fixture
def asked(deployment: Any) -> Asked:
    return ask(deployment)


@pytest.fixture
def key(deployment: Any) -> str:
    with tenant_scope(deployment.tenant_id):
        return str(create_api_key("Test").key)


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
    ref = uuid4() if which == "unknown" else ask(wanted.deployment, session=wanted.session).card.pk
    assert _post(client, wanted, ref=ref).status_code == 404


@pytest.mark.parametrize("value", ["", "x" * 4001, None, {"a": 1}])
def test_secret_that_is_none_is_refused_without_an_echo(client: Client, wanted: Asked, value: Any) -> None:
    response = _post(client, wanted, value)
    assert response.status_code == 400
    assert "xxx" not in response.content.decode()


def test_secret_is_stored_and_nothing_of_it_answered(client: Client, wanted: Asked) -> None:
    response = _post(client, wanted)
    assert response.status_code == 200
    assert response.json() == {"stored": True}


def test_secret_given_twice_is_refused(client: Client, wanted: Asked) -> None:
    _post(client, wanted)
    assert _post(client, wanted, "another").status_code == 409


def test_secret_stands_in_no_row_as_it_was_given(
    client: Client, wanted: Asked, superuser_dsn: str, caplog: pytest.LogCaptureFixture
) -> None:
    _post(client, wanted)
    rows = _everything(superuser_dsn)
    assert SECRET not in rows
    assert SECRET.encode().hex() not in rows
    assert SECRET not in caplog.text


def test_secret_that_was_given_is_told_to_the_widget_without_it(client: Client, wanted: Asked) -> None:
    _post(client, wanted)
    frame = frame_of(wanted.entries[-1])
    assert frame["type"] == "secure_input_completed"
    assert frame["ref_id"] == str(wanted.card.pk)
    assert frame["success"] is True


def test_secret_is_taken_once(client: Client, wanted: Asked) -> None:
    _post(client, wanted)
    take = lambda: wanted.do(prompts.take_secret, wanted.card.pk, wanted.session.pk, actor="api_key:test")  # noqa: E731 (two rivals do the same)
    assert take() == SECRET
    with pytest.raises(SilasError) as refused:
        take()
    assert refused.value.code == "secret_not_there"


def test_sealed_value_of_a_question_is_refused_by_the_database(asked: Asked) -> None:
    with tenant_scope(asked.session.tenant_id), pytest.raises(IntegrityError), transaction.atomic():
        VisitorCard.objects.filter(pk=asked.card.pk).update(sealed=b"x")


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
