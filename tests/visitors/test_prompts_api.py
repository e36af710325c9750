"""Can a tenant's own system ask over HTTP, and see what came of it?"""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from apps.sessions.models import ChatSession
from apps.tenants.services import create_api_key
from apps.visitors import prompts
from kernel.tenancy import tenant_scope
from tests.factories.sessions import make_session, visitor_of
from tests.factories.tenants import make_deployment
from tests.visitors.asked import OPTIONS


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
        prompts.answer(visitor_of(deployment, session.pk), made["id"], value="keep")
    address = f"/api/v1/sessions/{session.pk}/cards/{made['id']}"
    seen = client.get(address, headers={"Authorization": f"Bearer {key}"}).json()
    assert made["state"] == "open"
    assert seen["state"] == "answered"
    assert seen["chosen"] == "keep"
