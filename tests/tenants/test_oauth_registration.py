"""MCP clients that register themselves (RFC 7591): only where a company allows it, and never for more than reading."""

from __future__ import annotations

import json
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.db import IntegrityError, transaction
from django.test import Client
from django.urls import reverse

from apps.audit.models import AuditEntry
from apps.protocols import mcp_server
from apps.tenants.models import Deployment, OAuthApp, Tenant
from apps.tenants.oauth import services
from apps.tenants.oauth.services import NewApp, allow_self_registration
from apps.tenants.rules import SELF_REGISTERED_SCOPES
from kernel.errors import SilasError
from kernel.tenancy import tenant_scope
from tests.factories.console import browser
from tests.factories.oauth import CALLBACK, ISSUER, Flow, call, make_app
from tests.factories.tenants import make_deployment, make_member


@pytest.fixture
def chatbot(tenant: Any) -> Deployment:
    allow(tenant)
    return make_deployment(tenant)


def allow(tenant: Any, *, allowed: bool = True) -> None:
    with tenant_scope(tenant):
        allow_self_registration(tenant, allowed=allowed, actor="system")


def address() -> str:
    """An address that has not been counted yet."""
    return f"2001:db8:{uuid4().hex[:4]}:{uuid4().hex[:4]}::1"


def register(chatbot: Any, *, there: str = "", raw: Any = None, **described: Any) -> Any:
    body = json.dumps({"redirect_uris": [CALLBACK], **described}) if raw is None else raw
    key = getattr(chatbot, "public_key", chatbot)
    return Client(REMOTE_ADDR=there or address()).post(f"/oauth/register/{key}", body, "application/json")


def registered(tenant: Any) -> list[OAuthApp]:
    with tenant_scope(tenant):
        return list(OAuthApp.objects.filter(is_self_registered=True))


def flow_of(chatbot: Deployment, user: Any, **described: Any) -> Flow:
    made = register(chatbot, **described).json()
    with tenant_scope(chatbot.tenant_id):
        return Flow(NewApp(OAuthApp.objects.get(pk=made["client_id"])), user)


def resource(chatbot: Deployment) -> str:
    return f"{ISSUER}/mcp/deployments/{chatbot.public_key}"


# -- whether ---------------------------------------------------------------------------------------------------------


def test_nothing_is_offered_where_it_is_not_allowed(tenant: Any, other_tenant: Any) -> None:
    allow(other_tenant)
    closed = make_deployment(tenant)
    for key in (closed.public_key, "unknown", "x" * 300, "a%00b"):
        assert register(key).status_code == 404
        assert Client().get(f"/.well-known/oauth-authorization-server/mcp/deployments/{key}").status_code == 404
    assert registered(tenant) == []
    found = Client().get(f"{mcp_server.METADATA_PATH}{closed.public_key}").json()
    assert found["authorization_servers"] == [ISSUER]
    assert "registration_endpoint" not in Client().get("/.well-known/oauth-authorization-server").json()


def test_it_is_off_for_every_new_company_and_ends_at_once(tenant: Any) -> None:
    assert tenant.apps_register_themselves is False
    chatbot = make_deployment(tenant)
    allow(tenant)
    assert register(chatbot).status_code == 201
    allow(tenant, allowed=False)
    assert register(chatbot).status_code == 404
    assert len(registered(tenant)) == 1


def test_client_finds_the_way_from_the_mcp_server(chatbot: Deployment) -> None:
    [issuer] = Client().get(f"{mcp_server.METADATA_PATH}{chatbot.public_key}").json()["authorization_servers"]
    assert issuer == resource(chatbot)
    found = Client().get(f"/.well-known/oauth-authorization-server{issuer.removeprefix(ISSUER)}").json()
    assert found["issuer"] == issuer
    assert found["registration_endpoint"] == f"{ISSUER}/oauth/register/{chatbot.public_key}"
    assert found["authorization_endpoint"] == f"{ISSUER}/oauth/authorize/{chatbot.public_key}"
    assert found["token_endpoint"] == f"{ISSUER}/oauth/token"
    assert found["code_challenge_methods_supported"] == ["S256"]
    assert found["scopes_supported"] == [str(scope) for scope in SELF_REGISTERED_SCOPES]


def test_scopes_are_what_the_tools_of_mcp_servers_read() -> None:
    assert sorted(SELF_REGISTERED_SCOPES) == mcp_server._scopes()
    assert all(scope.endswith(":read") for scope in SELF_REGISTERED_SCOPES)


# -- what ------------------------------------------------------------------------------------------------------------


def test_public_app_is_registered_and_logged(chatbot: Deployment, tenant: Any) -> None:
    answer = register(chatbot, client_name="Assistant", scope="knowledge:read", logo_uri="https://evil.test/x.png")
    assert answer.status_code == 201
    assert answer["Cache-Control"] == "no-store"
    [app] = registered(tenant)
    assert answer.json() == {
        "client_id": str(app.pk),
        "client_id_issued_at": int(app.created_at.timestamp()),
        "client_name": "Assistant",
        "redirect_uris": [CALLBACK],
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "token_endpoint_auth_method": "none",
        "scope": "knowledge:read",
    }
    assert app.is_confidential is False
    with tenant_scope(tenant):
        entry = AuditEntry.objects.get(event="oauth_app_self_registered")
    assert entry.subject == f"oauth_app:{app.pk}"
    assert entry.actor == "system"


@pytest.mark.parametrize("method", ["client_secret_basic", "client_secret_post", "private_key_jwt"])
def test_app_that_asks_for_a_secret_gets_none(chatbot: Deployment, tenant: Any, method: str) -> None:
    answer = register(chatbot, token_endpoint_auth_method=method).json()
    assert answer["token_endpoint_auth_method"] == "none"
    assert "client_secret" not in answer
    [app] = registered(tenant)
    assert app.hashed_secret == ""
    with tenant_scope(tenant), pytest.raises(SilasError):
        services.replace_secret(app.pk, actor="system")
    with tenant_scope(tenant), pytest.raises(IntegrityError), transaction.atomic():
        OAuthApp.objects.filter(pk=app.pk).update(hashed_secret="0" * 64)


@pytest.mark.parametrize(
    ("asked", "given"),
    [
        (None, "cards:read knowledge:read sessions:read"),
        ("", "cards:read knowledge:read sessions:read"),
        ("cards:read cards:decide sessions:write api_keys:write", "cards:read"),
        ("openid sessions:read sessions:read", "sessions:read"),
    ],
)
def test_scopes_are_cut_to_reading(chatbot: Deployment, asked: Any, given: str) -> None:
    described = {} if asked is None else {"scope": asked}
    assert register(chatbot, **described).json()["scope"] == given


@pytest.mark.parametrize(
    ("described", "error"),
    [
        ({"redirect_uris": []}, "invalid_redirect_uri"),
        ({"redirect_uris": ["http://app.example/cb"]}, "invalid_redirect_uri"),
        ({"redirect_uris": [CALLBACK, "javascript:alert(1)"]}, "invalid_redirect_uri"),
        ({"redirect_uris": ["myapp://cb"]}, "invalid_redirect_uri"),
        ({"redirect_uris": ["http://127.0.0.1.evil.test/cb"]}, "invalid_redirect_uri"),
        ({"redirect_uris": ["https://user@app.example/cb"]}, "invalid_redirect_uri"),
        ({"redirect_uris": ["https://app.example/cb#x"]}, "invalid_redirect_uri"),
        ({"redirect_uris": [f"https://app.example/{place}" for place in range(11)]}, "invalid_redirect_uri"),
        ({"redirect_uris": CALLBACK}, "invalid_client_metadata"),
        ({"redirect_uris": [7]}, "invalid_client_metadata"),
        ({"redirect_uris": None}, "invalid_client_metadata"),
        ({"grant_types": ["client_credentials"]}, "invalid_client_metadata"),
        ({"grant_types": ["authorization_code", "implicit"]}, "invalid_client_metadata"),
        ({"grant_types": "authorization_code"}, "invalid_client_metadata"),
        ({"response_types": ["token"]}, "invalid_client_metadata"),
        ({"scope": "cards:decide"}, "invalid_client_metadata"),
        ({"scope": ["cards:read"]}, "invalid_client_metadata"),
        ({"client_name": "x" * 81}, "invalid_client_metadata"),
        ({"client_name": "Acme\u202eecivres"}, "invalid_client_metadata"),
        ({"client_name": "Acme\u0000"}, "invalid_client_metadata"),
        ({"client_name": "Acme\nservice"}, "invalid_client_metadata"),
        ({"client_name": {"en": "Acme"}}, "invalid_client_metadata"),
        ({"raw": "[]"}, "invalid_client_metadata"),
        ({"raw": "{"}, "invalid_client_metadata"),
        ({"raw": b"\xff\xfe"}, "invalid_client_metadata"),
        ({"raw": '{"a":' + "[" * 9000 + "]" * 9000 + "}"}, "invalid_client_metadata"),
        ({"padding": "x" * 17000}, "invalid_client_metadata"),
    ],
)
def test_bad_description_registers_nothing(
    chatbot: Deployment, tenant: Any, described: dict[str, Any], error: str
) -> None:
    answer = register(chatbot, **described)
    assert answer.status_code == 400
    assert answer.json()["error"] == error
    assert registered(tenant) == []


def test_only_post_registers(chatbot: Deployment) -> None:
    assert Client().get(f"/oauth/register/{chatbot.public_key}").status_code == 405


# -- what it may -----------------------------------------------------------------------------------------------------


def test_member_consents_and_is_told_that_the_app_registered_itself(chatbot: Deployment, agent: Any) -> None:
    flow = flow_of(chatbot, agent, client_name="Assistant")
    own = flow.address(resource=resource(chatbot)).replace("/authorize?", f"/authorize/{chatbot.public_key}?")
    page = browser(agent).get(own).content.decode()
    assert "This app registered itself" in page
    assert "Assistant" in page
    answer = browser(agent).post(own, {"decision": "allow"})
    assert f"iss={ISSUER.replace(':', '%3A').replace('/', '%2F')}%2Fmcp%2Fdeployments%2F" in answer["Location"]
    code = answer["Location"].partition("code=")[2].partition("&")[0]
    tokens = flow.redeem(code).json()
    assert tokens["scope"] == "cards:read knowledge:read sessions:read"
    assert call(tokens["access_token"]).status_code == 401
    assert flow.refresh(tokens["refresh_token"]).status_code == 200


def test_app_of_an_owner_does_not_warn(tenant: Any, agent: Any) -> None:
    page = Flow(make_app(tenant), agent).ask().content.decode()
    assert "registered itself" not in page


@pytest.mark.parametrize("asked", [None, f"{ISSUER}/api/v1", ISSUER])
def test_rest_api_is_not_for_apps_that_registered_themselves(chatbot: Deployment, agent: Any, asked: Any) -> None:
    assert flow_of(chatbot, agent).decide(resource=asked)["error"] == "invalid_target"


def test_code_needs_its_verifier(chatbot: Deployment, agent: Any) -> None:
    flow = flow_of(chatbot, agent)
    assert flow.decide(resource=resource(chatbot), code_challenge=None)["error"] == "invalid_request"
    code = flow.decide(resource=resource(chatbot))["code"]
    assert flow.redeem(code, code_verifier="x" * 43).status_code == 400


def test_more_scopes_than_registered_are_refused(chatbot: Deployment, agent: Any) -> None:
    flow = flow_of(chatbot, agent, scope="knowledge:read")
    assert flow.decide(resource=resource(chatbot), scope="cards:read")["error"] == "invalid_scope"


def test_app_has_no_access_of_its_own(chatbot: Deployment, agent: Any) -> None:
    flow = flow_of(chatbot, agent)
    answer = flow.request(grant_type="client_credentials", client_secret="", resource=resource(chatbot))
    assert answer.status_code == 401


def test_issuer_of_another_company_or_of_nobody_is_not_found(
    chatbot: Deployment, agent: Any, other_tenant: Any
) -> None:
    flow, foreign = flow_of(chatbot, agent), make_deployment(other_tenant)
    for key in (foreign.public_key, "unknown", "a%00b"):
        asked = flow.address(resource=resource(chatbot)).replace("/authorize?", f"/authorize/{key}?")
        assert browser(agent).get(asked).status_code == 404
        assert browser(agent).post(asked, {"decision": "allow"}).status_code == 404


def test_member_of_another_company_cannot_consent(chatbot: Deployment, other_tenant: Any) -> None:
    flow = flow_of(chatbot, make_member(other_tenant, "owner"))
    assert flow.ask(resource=resource(chatbot)).status_code == 404


# -- floods ----------------------------------------------------------------------------------------------------------


def test_floods_of_an_address_and_for_a_company_are_told_when_to_come_back(
    chatbot: Deployment, tenant: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("apps.tenants.oauth.views.MOST_REGISTRATIONS_THERE", 2)
    monkeypatch.setattr("apps.tenants.oauth.views.MOST_REGISTRATIONS_HERE", 3)
    there = address()
    assert [register(chatbot, there=there).status_code for _ in range(2)] == [201, 201]
    refused = register(chatbot, there=there)
    assert refused.status_code == 429
    assert 1 <= int(refused["Retry-After"]) <= 3600
    assert register(chatbot).status_code == 201
    assert register(chatbot).status_code == 429
    assert len(registered(tenant)) == 3


def test_nothing_is_registered_where_nothing_can_be_counted(chatbot: Deployment, tenant: Any, settings: Any) -> None:
    settings.REDIS_URL = "redis://127.0.0.1:1/0"
    assert register(chatbot).status_code == 429
    assert registered(tenant) == []


def test_of_apps_that_nobody_uses_the_newest_stay(
    chatbot: Deployment, tenant: Any, agent: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("apps.tenants.oauth.services.MOST_WAITING", 2)
    used = flow_of(chatbot, agent)
    used.decide(resource=resource(chatbot))
    made = [UUID(register(chatbot).json()["client_id"]) for _ in range(4)]
    assert {app.pk for app in registered(tenant)} == {used.app.app.pk, *made[-2:]}


# -- the owner -------------------------------------------------------------------------------------------------------


def test_owner_allows_it_sees_such_apps_and_revokes_them(tenant: Any, owner: Any, agent: Any) -> None:
    chatbot, switch = make_deployment(tenant), reverse("console-app-self-registration")
    assert browser(agent).post(switch, {"allowed": "1"}).status_code == 403
    assert browser(owner).post(switch, {"allowed": "1"}).status_code == 302
    assert Tenant.objects.get(pk=tenant.pk).apps_register_themselves
    flow = flow_of(chatbot, agent, client_name="Assistant")
    token = flow.tokens(resource=resource(chatbot))["access_token"]
    page = browser(owner).get(reverse("console-apps")).content.decode()
    assert "registered by itself" in page
    assert "Assistant" in page
    listed = browser(owner).get(f"/api/v1/oauth-apps/{flow.app.app.pk}").json()
    assert listed["is_self_registered"] is True
    assert browser(owner).post(reverse("console-app-revoke", args=[flow.app.app.pk])).status_code == 302
    assert services.token_holder(token, audience=f"/mcp/deployments/{chatbot.public_key}") is None
    assert flow.ask(resource=resource(chatbot)).status_code == 404
    browser(owner).post(switch, {"allowed": "0"})
    browser(owner).post(switch, {"allowed": "0"})
    with tenant_scope(tenant):
        entries = AuditEntry.objects.filter(event="oauth_registration_changed").order_by("seq")
        assert [json.loads(entry.data)["allowed"] for entry in entries] == [True, False]
        assert {entry.actor for entry in entries} == {f"user:{owner.pk}"}


def test_owner_gives_such_an_app_no_more_than_reading(chatbot: Deployment, agent: Any, owner: Any) -> None:
    flow = flow_of(chatbot, agent)
    change = reverse("console-app-change", args=[flow.app.app.pk])
    form = {"name": "Assistant", "redirect_uris": CALLBACK, "scopes": ["sessions:write"]}
    assert browser(owner).post(change, form).status_code == 422
    wider = json.dumps({"scopes": ["cards:read", "sessions:write"]})
    answer = browser(owner).patch(f"/api/v1/oauth-apps/{flow.app.app.pk}", wider, "application/json")
    assert answer.status_code == 422
