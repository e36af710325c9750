"""The session endpoint: strangers first (contract interfaces, `POST /api/v1/widget/<KEY>/sessions`)."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client, override_settings

from apps.access import tokens
from apps.sessions.models import ChatSession
from apps.sessions.ratelimit import new_conversations
from apps.tenants.models import Deployment
from kernel.tenancy import tenant_scope
from tests.factories.api import code
from tests.factories.tenants import make_deployment


def _start(client: Client, key: str, body: Any = None, **headers: str) -> Any:
    return client.post(
        f"/api/v1/widget/{key}/sessions", {} if body is None else body, content_type="application/json", headers=headers
    )


@pytest.mark.parametrize("origin", ["https://evil.test", "null", "http://site.test.evil.test", "https://site.test"])
def test_start_from_a_foreign_site_is_refused(client: Client, deployment: Deployment, origin: str) -> None:
    assert code(_start(client, deployment.public_key, origin=origin)) == (403, "origin_not_allowed")


def test_start_from_a_foreign_site_stores_no_session(client: Client, deployment: Deployment) -> None:
    _start(client, deployment.public_key, origin="https://evil.test")
    with tenant_scope(deployment.tenant_id):
        assert not ChatSession.objects.filter(deployment=deployment).exists()


@pytest.mark.parametrize("key", ["no-such-key", "UPPER", "%00", "%F0%9F%92%A5"])
def test_start_at_an_unknown_deployment_is_404(client: Client, database: None, key: str) -> None:
    assert code(_start(client, key)) == (404, "not_found")


def test_start_at_a_disabled_deployment_is_404(client: Client, tenant: Any) -> None:
    assert code(_start(client, make_deployment(tenant, enabled=False).public_key)) == (404, "not_found")


@pytest.mark.parametrize(
    "body",
    [
        "not json",
        "[]",
        "7",
        "null",
        '{"resume_token": {"a": 1}}',
        '{"resume_token": "a\\u0000b"}',
        '{"resume_token": "' + "a" * 200 + '"}',
        '{"locale": "../../etc"}',
        '{"locale": ["en"]}',
        '{"attributes": ["plan"]}',
        '{"attributes": {"plan": {"a": 1}}}',
        '{"attributes": {"a\\u0000b": "x"}}',
        '{"attributes": {"plan": "' + "a" * 201 + '"}}',
        '{"attributes": {' + ",".join(f'"{n}": "x"' for n in range(21)) + "}}",
        '{"identity_token": "' + "a" * 9000 + '"}',
        "[" * 100_000,
        '{"a":' * 50_000,
    ],
)
def test_start_with_a_bad_body_is_400(client: Client, deployment: Deployment, body: str) -> None:
    assert _start(client, deployment.public_key, body).status_code == 400


def test_start_with_an_endless_body_is_413_in_the_one_shape(client: Client, deployment: Deployment) -> None:
    assert code(_start(client, deployment.public_key, '{"locale":"' + "a" * 3_000_000)) == (413, "too_large")


@pytest.fixture
def crowded(deployment: Deployment, monkeypatch: pytest.MonkeyPatch) -> Client:
    """Somebody from whose address two conversations have begun, which is all that is allowed."""
    monkeypatch.setattr(new_conversations, "MAX_BEGINNINGS", 2)
    client = Client(REMOTE_ADDR="203.0.113.9")
    for _ in range(2):
        assert _start(client, deployment.public_key).status_code == 201
    return client


def test_start_of_one_conversation_too_many_from_an_address_is_429(crowded: Client, deployment: Deployment) -> None:
    answer = _start(crowded, deployment.public_key)
    assert code(answer) == (429, "rate_limited")
    assert answer.json()["error"]["extra"]["retry_after"] > 0


def test_start_from_another_address_is_not_held_back(crowded: Client, deployment: Deployment) -> None:
    assert _start(Client(REMOTE_ADDR="203.0.113.10"), deployment.public_key).status_code == 201


def test_start_at_another_deployment_is_not_held_back(crowded: Client, tenant: Any) -> None:
    assert _start(crowded, make_deployment(tenant).public_key).status_code == 201


def test_conversation_taken_up_again_and_again_counts_once(
    deployment: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(new_conversations, "MAX_BEGINNINGS", 2)
    client = Client(REMOTE_ADDR="203.0.113.11")
    kept = {"resume_token": _start(client, deployment.public_key).json()["resume_token"]}
    assert {_start(client, deployment.public_key, kept).status_code for _ in range(4)} == {201}


def test_start_without_a_cache_is_let_in(deployment: Deployment) -> None:
    gone = {"BACKEND": "django.core.cache.backends.redis.RedisCache", "LOCATION": "unix:///nowhere.sock"}
    with override_settings(CACHES={"default": gone}):
        assert _start(Client(REMOTE_ADDR="203.0.113.12"), deployment.public_key).status_code == 201


def test_start_by_get_is_405_in_the_one_shape(client: Client, deployment: Deployment) -> None:
    response = client.get(f"/api/v1/widget/{deployment.public_key}/sessions")
    assert code(response) == (405, "method_not_allowed")


def test_start_from_the_platforms_own_frame_begins_a_session(client: Client, deployment: Deployment) -> None:
    assert _start(client, deployment.public_key, origin="http://testserver").status_code == 201


def test_start_from_an_allowed_site_begins_a_session(client: Client, deployment: Deployment) -> None:
    assert _start(client, deployment.public_key, origin="http://site.test").status_code == 201


def test_start_answers_what_the_contract_names(client: Client, deployment: Deployment) -> None:
    answer = _start(client, deployment.public_key, {"locale": "en-GB"}).json()
    assert set(answer) == {"session_id", "token", "resume_token", "ws_path", "expires_in"}


def test_start_gives_a_token_bound_to_deployment_and_session(client: Client, deployment: Deployment) -> None:
    answer = _start(client, deployment.public_key).json()
    visitor = tokens.read(answer["token"])
    assert visitor is not None
    assert visitor.deployment_key == deployment.public_key
    assert str(visitor.session_id) == answer["session_id"]


def test_start_gives_the_sockets_path(client: Client, deployment: Deployment) -> None:
    assert _start(client, deployment.public_key).json()["ws_path"] == f"/ws/widget/{deployment.public_key}/"


def test_start_with_a_resume_token_continues_the_conversation(client: Client, deployment: Deployment) -> None:
    first = _start(client, deployment.public_key).json()
    again = _start(client, deployment.public_key, {"resume_token": first["resume_token"]}).json()
    assert again["session_id"] == first["session_id"]


def test_start_with_another_deployments_resume_token_begins_anew(
    client: Client, tenant: Any, deployment: Deployment
) -> None:
    first = _start(client, deployment.public_key).json()
    sister = make_deployment(tenant)
    again = _start(client, sister.public_key, {"resume_token": first["resume_token"]}).json()
    assert again["session_id"] != first["session_id"]


def test_start_with_another_tenants_resume_token_begins_anew(
    client: Client, other_tenant: Any, deployment: Deployment
) -> None:
    first = _start(client, deployment.public_key).json()
    theirs = make_deployment(other_tenant)
    again = _start(client, theirs.public_key, {"resume_token": first["resume_token"]}).json()
    assert again["session_id"] != first["session_id"]


def test_start_with_an_identity_token_without_a_registered_key_says_that_it_was_not_believed(
    client: Client, deployment: Deployment
) -> None:
    answer = _start(client, deployment.public_key, {"identity_token": "a.b.c"}).json()
    assert answer["identity"] == {"accepted": False, "reason": "identity_key_missing"}


def test_start_answer_is_never_cached(client: Client, deployment: Deployment) -> None:
    assert _start(client, deployment.public_key)["Cache-Control"] == "no-store"


def test_what_a_site_says_of_its_visitor_is_kept_and_proves_nothing(client: Client, deployment: Deployment) -> None:
    first = _start(client, deployment.public_key, {"attributes": {"plan": "gold", "level": "verified"}}).json()
    again = {"resume_token": first["resume_token"], "attributes": {"plan": "silver"}}
    _start(client, deployment.public_key, again)
    with tenant_scope(deployment.tenant_id):
        session = ChatSession.objects.get(pk=first["session_id"])
    assert session.attributes == {"level": "verified", "plan": "silver"}
    assert session.level == "public"
    assert session.customer == ""
