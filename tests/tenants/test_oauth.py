"""OAuth 2.1 against hostile apps, members and strangers: codes, redirects, tokens, and the rights of each token."""

from __future__ import annotations

import base64
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.test import Client
from django.urls import reverse

from apps.audit.models import AuditEntry
from apps.console.names import names_for
from apps.tenants.api_auth import authenticate_bearer
from apps.tenants.enums import KeyScope, Role
from apps.tenants.models import Membership, OAuthGrant, OAuthToken, Tenant, User
from apps.tenants.oauth import services
from apps.tenants.rules import APP_SCOPES, is_registered_redirect, redirects_problem
from apps.tenants.services import change_role, create_api_key, remove_member
from kernel import clock
from kernel.errors import SilasError
from kernel.tenancy import tenant_scope
from tests.factories.console import browser
from tests.factories.oauth import CALLBACK, ISSUER, Flow, call, make_app
from tests.factories.tenants import make_deployment, make_member
from tests.rivals import race


@pytest.fixture
def flow(tenant: Any, agent: Any) -> Flow:
    return Flow(make_app(tenant), agent)


def is_valid(token: str, audience: str = "") -> bool:
    try:
        authenticate_bearer(token, audience=audience)
    except SilasError:
        return False
    return True


def later(monkeypatch: pytest.MonkeyPatch, **time: float) -> None:
    moment = clock.now() + timedelta(**time)
    for module in ("apps.tenants.oauth.services",):
        monkeypatch.setattr(f"{module}.now", lambda: moment)


# -- redirects -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "address",
    [
        None,
        "",
        f"{CALLBACK}/more",
        f"{CALLBACK}?next=1",
        "https://app.example/callbac",
        "https://app.example.evil.test/callback",
        "https://app.example@evil.test/callback",
        "https://evil.test",
        "http://app.example/callback",
        "//evil.test",
        "javascript:alert(1)",
        "https://APP.example/callback",
        f"{CALLBACK}#x",
    ],
)
def test_nobody_is_redirected_to_an_address_that_is_not_registered(flow: Flow, address: Any) -> None:
    sent = browser(flow.user).post(flow.address(redirect_uri=address), {"decision": "allow"})
    for answer in (flow.ask(redirect_uri=address), sent):
        assert answer.status_code == 400
        assert "Location" not in answer


def test_duplicate_redirect_address_is_not_followed(flow: Flow) -> None:
    answer = browser(flow.user).get(flow.address() + "&redirect_uri=https%3A%2F%2Fevil.test")
    assert answer.status_code == 400


@pytest.mark.parametrize(
    ("address", "registered", "expected"),
    [
        ("http://127.0.0.1:51004/cb", "http://127.0.0.1/cb", True),
        ("http://localhost:1/cb", "http://localhost:9/cb", True),
        ("http://[::1]:51004/cb", "http://[::1]/cb", True),
        ("http://127.0.0.1:51004/cb/x", "http://127.0.0.1/cb", False),
        ("http://127.0.0.1:80@evil.test/cb", "http://127.0.0.1/cb", False),
        ("http://localhost:80/cb", "http://127.0.0.1/cb", False),
        ("http://127.0.0.1.evil.test/cb", "http://127.0.0.1/cb", False),
        ("https://app.example:444/cb", "https://app.example/cb", False),
        ("http://127.0.0.1:51004/cb\n", "http://127.0.0.1/cb", False),
    ],
)
def test_only_the_port_of_a_local_program_may_differ(address: str, registered: str, expected: bool) -> None:
    assert is_registered_redirect(address, [registered]) is expected


@pytest.mark.parametrize(
    "address",
    [
        "http://app.example/cb",
        "javascript:alert(1)",
        "data:text/html,x",
        "https://user@app.example/cb",
        "https://app.example/cb#x",
        "https://app.example\\@evil.test/",
        "https:///cb",
        "https://app.example/ü",
        "https://app.example/" + "x" * 500,
        "myapp://cb",
    ],
)
def test_unsafe_redirect_address_is_not_registered(address: str) -> None:
    assert redirects_problem([address])


# -- the request -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"code_challenge": None}, "invalid_request"),
        ({"code_challenge": "short"}, "invalid_request"),
        ({"code_challenge_method": "plain"}, "invalid_request"),
        ({"code_challenge_method": None}, "invalid_request"),
        ({"response_type": "token"}, "unsupported_response_type"),
        ({"response_type": None}, "invalid_request"),
        ({"response_type": "none"}, "unauthorized_client"),
        ({"scope": "sessions:read cards:decide"}, "invalid_scope"),
        ({"scope": "knowledge:read"}, "invalid_scope"),
        ({"resource": "https://elsewhere.example/"}, "invalid_target"),
        ({"resource": f"{ISSUER}/mcp/deployments/unknown"}, "invalid_target"),
        ({"response_mode": "fragment", "scope": "x"}, "invalid_scope"),
    ],
)
def test_wrong_request_is_refused_at_the_apps_address(flow: Flow, changes: dict[str, Any], error: str) -> None:
    answer = flow.decide(**changes)
    assert answer["error"] == error
    assert answer["state"] == "xyz"
    assert answer["iss"] == ISSUER
    assert "code" not in answer


def test_another_companys_deployment_is_no_resource(flow: Flow, other_tenant: Any) -> None:
    foreign = make_deployment(other_tenant)
    resource = f"{ISSUER}/mcp/deployments/{foreign.public_key}"
    assert flow.decide(resource=resource)["error"] == "invalid_target"


def test_stranger_and_member_of_another_company_are_not_redirected(
    flow: Flow, stranger: Any, other_tenant: Any
) -> None:
    for user in (stranger, make_member(other_tenant, "owner")):
        for address in (flow.address(), flow.address(scope="wrong")):
            assert browser(user).get(address).status_code == 404
            assert browser(user).post(address, {"decision": "allow"}).status_code == 404


def test_unknown_app_is_not_found(flow: Flow) -> None:
    for client_id in (str(uuid4()), "x", "", None):
        assert flow.ask(client_id=client_id).status_code == 404


def test_revoked_app_asks_for_nothing(flow: Flow, tenant: Any) -> None:
    token = flow.tokens()["access_token"]
    with tenant_scope(tenant):
        services.revoke_app(flow.app.app.pk, actor="system")
    assert flow.ask().status_code == 404
    assert not is_valid(token)


def test_without_login_the_way_leads_through_the_login_and_back(flow: Flow) -> None:
    answer = Client().get(flow.address())
    assert answer.status_code == 302
    assert answer["Location"].startswith(reverse("console-login"))
    assert "%2Foauth%2Fauthorize" in answer["Location"] or "/oauth/authorize" in answer["Location"]


def test_missing_second_factor_comes_before_consent(flow: Flow, tenant: Any) -> None:
    Tenant.objects.filter(pk=tenant.pk).update(second_factor_required=True)
    for answer in (flow.ask(), browser(flow.user).post(flow.address(), {"decision": "allow"})):
        assert answer["Location"] == reverse("console-account")


def test_login_of_another_company_does_not_consent_here(flow: Flow) -> None:
    client = browser(flow.user)
    session = client.session
    session["login_only_tenant"] = str(uuid4())
    session.save()
    assert client.get(flow.address()).status_code == 404


def test_consent_needs_the_csrf_token(flow: Flow) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(flow.user)
    assert client.post(flow.address(), {"decision": "allow"}).status_code == 403


def test_consent_page_shows_the_app_and_cannot_be_framed(tenant: Any, agent: Any) -> None:
    flow = Flow(make_app(tenant, KeyScope.SESSIONS_READ, name="<script>alert(1)</script>"), agent)
    answer = flow.ask()
    text = answer.content.decode()
    assert "<script>alert" not in text
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in text
    assert str(KeyScope.SESSIONS_READ.label) in text
    assert "app.example" in text
    assert tenant.name in text
    assert answer["X-Frame-Options"] == "DENY"
    policy = answer["Content-Security-Policy"]
    assert "frame-ancestors 'none'" in policy
    assert "form-action 'self' https://app.example" in policy
    assert "no-store" in answer["Cache-Control"]


def test_denial_is_told_to_the_app(flow: Flow, tenant: Any) -> None:
    answer = flow.decide("deny")
    assert answer == {"error": "access_denied", "state": "xyz", "iss": ISSUER}
    with tenant_scope(tenant):
        assert not OAuthGrant.objects.exists()


def test_code_comes_with_state_and_issuer(flow: Flow) -> None:
    answer = flow.decide()
    assert answer.keys() == {"code", "state", "iss"}
    assert answer["state"] == "xyz"
    assert answer["iss"] == ISSUER


# -- codes -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "changes",
    [
        {"code_verifier": None},
        {"code_verifier": "a" * 43},
        {"code_verifier": "short"},
        {"redirect_uri": None},
        {"redirect_uri": f"{CALLBACK}/"},
        {"resource": f"{ISSUER}/mcp/deployments/k"},
        {"code": "oac_unknown"},
    ],
)
def test_code_is_worth_nothing_without_what_it_was_given_for(flow: Flow, tenant: Any, changes: dict[str, Any]) -> None:
    code = flow.decide()["code"]
    answer = flow.redeem(changes.pop("code", code), **changes)
    assert answer.status_code == 400
    with tenant_scope(tenant):
        assert not OAuthToken.objects.exists()


def test_code_of_another_app_is_unknown(flow: Flow, tenant: Any, other_tenant: Any) -> None:
    code = flow.decide()["code"]
    for owner in (tenant, other_tenant):
        thief = Flow(make_app(owner, confidential=owner is tenant), flow.user)
        thief.verifier = flow.verifier
        answer = thief.redeem(code)
        assert answer.status_code == 400
        assert answer.json()["error"] == "invalid_grant"
    assert flow.redeem(code).status_code == 200


def test_replayed_code_revokes_its_tokens(flow: Flow, tenant: Any) -> None:
    code = flow.decide()["code"]
    tokens = flow.redeem(code).json()
    assert is_valid(tokens["access_token"])
    assert flow.redeem(code).json()["error"] == "invalid_grant"
    assert not is_valid(tokens["access_token"])
    assert flow.refresh(tokens["refresh_token"]).status_code == 400
    with tenant_scope(tenant):
        assert '"reason":"code_replayed"' in AuditEntry.objects.filter(event="oauth_access_revoked").get().data


def test_of_rivals_with_one_code_or_refresh_token_one_is_served(flow: Flow) -> None:
    code = flow.decide()["code"]
    answers = race(*[lambda: flow.redeem(code)] * 4)
    assert sorted(answer.status_code for answer in answers) == [200, 400, 400, 400]
    tokens = flow.tokens()
    answers = race(*[lambda: flow.refresh(tokens["refresh_token"])] * 4)
    assert sorted(answer.status_code for answer in answers) == [200, 400, 400, 400]
    assert not is_valid(tokens["access_token"])


def test_code_expires_after_a_minute(flow: Flow, monkeypatch: pytest.MonkeyPatch) -> None:
    code = flow.decide()["code"]
    later(monkeypatch, seconds=61)
    assert flow.redeem(code).json()["error"] == "invalid_grant"


# -- the app's own authentication ------------------------------------------------------------------------------------


@pytest.mark.parametrize("secret", ["", "ocs_wrong", None])
def test_confidential_app_proves_itself(tenant: Any, agent: Any, secret: Any) -> None:
    flow = Flow(make_app(tenant, confidential=True), agent)
    answer = flow.redeem(flow.decide()["code"], client_secret=secret)
    assert answer.status_code == 401
    assert answer.json()["error"] == "invalid_client"


def test_replaced_secret_ends_at_once(tenant: Any, agent: Any) -> None:
    flow = Flow(make_app(tenant, confidential=True), agent)
    with tenant_scope(tenant):
        new = services.replace_secret(flow.app.app.pk, actor="system")
    assert flow.redeem(flow.decide()["code"]).status_code == 401
    assert flow.redeem(flow.decide()["code"], client_secret=new.secret).status_code == 200


def test_basic_authentication(tenant: Any, agent: Any) -> None:
    flow = Flow(make_app(tenant, confidential=True), agent)
    for secret, status in (("wrong", 401), (flow.app.secret, 200)):
        given = base64.b64encode(f"{flow.app.app.client_id}:{secret}".encode()).decode()
        answer = Client().post(
            "/oauth/token",
            "grant_type=client_credentials",
            content_type="application/x-www-form-urlencoded",
            headers={"authorization": f"Basic {given}"},
        )
        assert answer.status_code == status


@pytest.mark.parametrize("body", [b"", b"\xff\xfe", b"grant_type=x&client_id=%00", b"{}", b"client_id=a&client_id=b"])
def test_nonsense_is_refused(database: None, body: bytes) -> None:
    for address in ("/oauth/token", "/oauth/revoke"):
        for kind in ("application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "application/json"):
            answer = Client().post(address, body, content_type=kind)
            assert answer.status_code in (400, 401)


def test_query_is_no_place_for_secrets(flow: Flow) -> None:
    assert flow.request("/oauth/token?grant_type=client_credentials").status_code == 400
    assert Client().get("/oauth/token").status_code == 405


def test_public_app_has_no_credentials_of_its_own(flow: Flow) -> None:
    assert flow.request(grant_type="client_credentials").status_code == 401


@pytest.mark.parametrize("grant_type", ["password", "implicit", "urn:ietf:params:oauth:grant-type:device_code"])
def test_other_grants_are_not_offered(flow: Flow, grant_type: str) -> None:
    answer = flow.request(grant_type=grant_type, username="x", password="y")
    assert answer.status_code == 400


# -- refresh tokens --------------------------------------------------------------------------------------------------


def test_refresh_rotates_and_reuse_revokes_the_family(flow: Flow, tenant: Any) -> None:
    first = flow.tokens()
    second = flow.refresh(first["refresh_token"]).json()
    assert second["refresh_token"] != first["refresh_token"]
    assert is_valid(first["access_token"])
    assert is_valid(second["access_token"])
    assert flow.refresh(first["refresh_token"]).json()["error"] == "invalid_grant"
    assert not is_valid(second["access_token"])
    assert flow.refresh(second["refresh_token"]).status_code == 400
    with tenant_scope(tenant):
        assert '"reason":"refresh_replayed"' in AuditEntry.objects.filter(event="oauth_access_revoked").get().data


def test_refresh_never_widens(flow: Flow) -> None:
    tokens = flow.tokens(scope="sessions:read")
    wider = flow.refresh(tokens["refresh_token"], scope="sessions:read sessions:write")
    assert wider.json()["error"] == "invalid_scope"
    narrow = flow.refresh(tokens["refresh_token"]).json()
    assert narrow["scope"] == "sessions:read"


def test_refresh_token_of_another_app_is_unknown_and_stays_valid(flow: Flow, tenant: Any) -> None:
    tokens = flow.tokens()
    assert Flow(make_app(tenant), flow.user).refresh(tokens["refresh_token"]).json()["error"] == "invalid_grant"
    assert flow.refresh(tokens["refresh_token"]).status_code == 200


def test_refresh_token_is_no_access_token_and_ends_after_30_days(flow: Flow, monkeypatch: pytest.MonkeyPatch) -> None:
    tokens = flow.tokens()
    assert not is_valid(tokens["refresh_token"])
    later(monkeypatch, days=30, seconds=1)
    assert flow.refresh(tokens["refresh_token"]).status_code == 400


def test_access_token_ends_after_an_hour(flow: Flow, monkeypatch: pytest.MonkeyPatch) -> None:
    tokens = flow.tokens()
    assert tokens["expires_in"] == 3600
    later(monkeypatch, seconds=3601)
    assert not is_valid(tokens["access_token"])


# -- rights ----------------------------------------------------------------------------------------------------------


def test_token_may_do_what_role_and_scopes_allow(flow: Flow, tenant: Any) -> None:
    read = flow.tokens(scope="sessions:read")["access_token"]
    both = flow.tokens()["access_token"]
    assert call(read).status_code == 200
    refused = call(read, "/api/v1/labels", "POST", '{"name": "a", "colour": "red"}')
    assert refused.status_code == 403
    assert refused.json()["error"]["code"] == "forbidden_scope"
    assert call(both, "/api/v1/labels", "POST", '{"name": "a", "colour": "red"}').status_code == 201
    with tenant_scope(tenant):
        change_role(Membership.objects.get(user=flow.user), Role.VIEWER)
    refused = call(both, "/api/v1/labels", "POST", '{"name": "b", "colour": "red"}')
    assert refused.status_code == 403
    assert refused.json()["error"]["code"] == "forbidden_role"
    assert call(both).status_code == 200


def test_views_for_owners_refuse_an_agents_token(tenant: Any, agent: Any, owner: Any) -> None:
    app = make_app(tenant, KeyScope.GATES_READ, KeyScope.GATES_WRITE)
    refused = call(Flow(app, agent).tokens()["access_token"], "/api/v1/gates")
    assert refused.status_code == 403
    assert refused.json()["error"]["code"] == "forbidden_role"
    assert call(Flow(app, owner).tokens()["access_token"], "/api/v1/gates").status_code == 200


@pytest.mark.parametrize("end", ["removed", "deactivated"])
def test_former_members_tokens_are_dead(flow: Flow, tenant: Any, owner: Any, end: str) -> None:
    tokens = flow.tokens()
    if end == "removed":
        with tenant_scope(tenant):
            remove_member(Membership.objects.get(user=flow.user))
    else:
        User.objects.filter(pk=flow.user.pk).update(is_active=False)
    assert call(tokens["access_token"]).status_code == 401
    assert flow.refresh(tokens["refresh_token"]).status_code == 400


def test_member_who_returns_has_to_consent_again(flow: Flow, tenant: Any, owner: Any) -> None:
    tokens = flow.tokens()
    with tenant_scope(tenant):
        remove_member(Membership.objects.get(user=flow.user))
        Membership.objects.create(user=flow.user, role=Role.AGENT)
    assert not is_valid(tokens["access_token"])


def test_audit_log_names_app_and_member(flow: Flow, tenant: Any) -> None:
    token = flow.tokens()["access_token"]
    call(token, "/api/v1/labels", "POST", '{"name": "a", "colour": "red"}')
    with tenant_scope(tenant):
        entry = AuditEntry.objects.get(event="label_saved")
        grant = OAuthGrant.objects.get()
    assert entry.actor == f"oauth_grant:{grant.pk}"
    with tenant_scope(tenant):
        assert names_for([entry.actor]).of(entry.actor) == f"Helper for {flow.user.display_name}"


def test_app_acts_for_itself_with_its_scopes(tenant: Any, agent: Any) -> None:
    flow = Flow(make_app(tenant, KeyScope.SESSIONS_READ, confidential=True), agent)
    answer = flow.request(grant_type="client_credentials")
    assert answer.status_code == 200
    assert "refresh_token" not in answer.json()
    token = answer.json()["access_token"]
    caller = authenticate_bearer(token)
    assert caller.user is None
    assert caller.is_limited
    assert call(token).status_code == 200
    assert call(token, "/api/v1/cards").status_code == 403
    assert flow.request(grant_type="client_credentials", scope="cards:read").json()["error"] == "invalid_scope"
    assert flow.request(grant_type="client_credentials", resource="https://x.example").status_code == 400
    assert flow.request(grant_type="client_credentials").status_code == 200
    with tenant_scope(tenant):
        assert OAuthGrant.objects.count() == 1


def test_no_app_decides_or_gives_rights(tenant: Any, owner: Any) -> None:
    never = {"cards:decide", "sessions:secrets", "members:write", "api_keys:write", "safety:agent", "safety:confirm"}
    assert not never & set(APP_SCOPES)
    for scope in (KeyScope.CARDS_DECIDE, KeyScope.API_KEYS_WRITE):
        with pytest.raises(SilasError, match="permissions"):
            make_app(tenant, scope)
    token = Flow(make_app(tenant, *APP_SCOPES), owner).tokens()["access_token"]
    for path in (f"/api/v1/cards/{uuid4()}/decision", "/api/v1/client-keys", "/api/v1/api-keys", "/api/v1/oauth-apps"):
        assert call(token, path, "POST", "{}").status_code in (400, 403), path
    assert call(token, f"/api/v1/contacts/{uuid4()}/forget", "POST").json()["error"]["code"] == "forbidden_role"


def test_token_for_one_resource_is_refused_by_another(flow: Flow, tenant: Any) -> None:
    deployment = make_deployment(tenant)
    path = f"/mcp/deployments/{deployment.public_key}"
    bound = flow.tokens(resource=f"{ISSUER}{path}")["access_token"]
    free = flow.tokens(resource=f"{ISSUER}/api/v1")["access_token"]
    assert call(bound).status_code == 401
    assert is_valid(bound, path)
    assert not is_valid(bound, path + "x")
    assert not is_valid(free, path)
    assert is_valid(free)


# -- revocation ------------------------------------------------------------------------------------------------------


def test_app_hands_back_its_tokens(flow: Flow, tenant: Any) -> None:
    tokens = flow.tokens()
    other = Flow(make_app(tenant), flow.user)
    assert other.request("/oauth/revoke", token=tokens["access_token"]).status_code == 200
    assert is_valid(tokens["access_token"])
    assert flow.request("/oauth/revoke", token=tokens["access_token"]).status_code == 200
    assert not is_valid(tokens["access_token"])
    second = flow.refresh(tokens["refresh_token"]).json()
    assert flow.request("/oauth/revoke", token=second["refresh_token"]).status_code == 200
    assert not is_valid(second["access_token"])
    assert flow.request("/oauth/revoke", token="unknown").status_code == 200


def test_member_revokes_only_their_own_apps(flow: Flow, tenant: Any, approver: Any) -> None:
    tokens = flow.tokens()
    with tenant_scope(tenant):
        grant = OAuthGrant.objects.get()
    address = reverse("console-connected-app-revoke", args=[grant.pk])
    assert browser(approver).post(address).status_code == 404
    assert is_valid(tokens["access_token"])
    page = browser(flow.user).get(reverse("console-connected-apps")).content.decode()
    assert "Helper" in page
    assert address in page
    assert address not in browser(approver).get(reverse("console-connected-apps")).content.decode()
    assert browser(flow.user).post(address).status_code == 302
    assert not is_valid(tokens["access_token"])


def test_secrets_codes_and_tokens_are_stored_as_hashes_only(tenant: Any, agent: Any) -> None:
    flow = Flow(make_app(tenant, confidential=True), agent)
    code = flow.decide()["code"]
    tokens = flow.redeem(code).json()
    secrets = [flow.app.secret, code, tokens["access_token"], tokens["refresh_token"]]
    with tenant_scope(tenant):
        flow.app.app.refresh_from_db()
        rows = [*OAuthGrant.objects.values(), *OAuthToken.objects.values(), vars(flow.app.app)]
        rows += list(AuditEntry.objects.values())
    assert not [secret for secret in secrets if secret in str(rows)]


# -- discovery, console, API -----------------------------------------------------------------------------------------


def test_metadata_names_what_is_offered(database: None) -> None:
    found = Client().get("/.well-known/oauth-authorization-server").json()
    assert found["issuer"] == ISSUER
    assert found["code_challenge_methods_supported"] == ["S256"]
    assert found["authorization_response_iss_parameter_supported"] is True
    assert "cards:decide" not in found["scopes_supported"]
    assert "registration_endpoint" not in found


def test_owner_registers_an_app_in_the_console(owner: Any, tenant: Any) -> None:
    form = {
        "name": "Dashboard",
        "redirect_uris": CALLBACK,
        "scopes": ["sessions:read"],
        "confidential": "on",
    }
    answer = browser(owner).post(reverse("console-app-register"), form)
    assert answer.status_code == 200
    with tenant_scope(tenant):
        [app] = services.list_apps()
    assert app.client_id in answer.content.decode()
    assert "ocs_" in answer.content.decode()
    assert "ocs_" not in browser(owner).get(reverse("console-apps")).content.decode()
    wrong = browser(owner).post(reverse("console-app-register"), {**form, "redirect_uris": "http://evil.test"})
    assert wrong.status_code == 422
    assert browser(owner).post(reverse("console-app-secret", args=[app.pk])).status_code == 200
    assert browser(owner).post(reverse("console-app-revoke", args=[app.pk])).status_code == 302
    assert browser(owner).post(reverse("console-app-secret", args=[app.pk])).status_code == 409


def test_apps_over_the_api(tenant: Any, other_tenant: Any, owner: Any) -> None:
    def send(user: Any, method: str, path: str = "", body: str = "") -> Any:
        return browser(user).generic(method, f"/api/v1/oauth-apps{path}", body, "application/json")

    body = '{"name": "CLI", "redirect_uris": ["http://127.0.0.1/cb"], "scopes": ["sessions:read"]}'
    made = send(owner, "POST", body=body)
    assert made.status_code == 201
    assert made.json()["secret"] == ""
    app_id = made.json()["app"]["id"]
    stranger = make_member(other_tenant, "owner")
    for method, path in (("GET", ""), ("DELETE", ""), ("POST", "/secret")):
        assert send(stranger, method, f"/{app_id}{path}").status_code == 404
    assert send(make_member(tenant, "approver"), "GET").status_code == 403
    assert send(owner, "POST", f"/{app_id}/secret").status_code == 409
    assert send(owner, "POST", body=body.replace("sessions:read", "cards:decide")).status_code == 400
    assert send(owner, "DELETE", f"/{app_id}").status_code == 204
    assert send(owner, "GET").json()["apps"][0]["revoked_at"]


def test_webhook_needs_the_scopes_of_its_events_and_a_login_has_them(tenant: Any, owner: Any) -> None:
    def body(event: str) -> str:
        return f'{{"url": "https://hooks.example.com/{event}", "events": ["{event}"]}}'

    app = make_app(tenant, KeyScope.SETTINGS_WRITE, KeyScope.AUTOMATIONS_WRITE, KeyScope.SESSIONS_READ)
    token = Flow(app, owner).tokens()["access_token"]
    missing = call(token, "/api/v1/webhooks", "POST", body("card.created"))
    assert missing.status_code == 403
    assert missing.json()["error"]["code"] == "forbidden_scope"
    logged_in = browser(owner).post("/api/v1/webhooks", body("card.created"), content_type="application/json")
    assert logged_in.status_code == 201


# -- changes of an app -----------------------------------------------------------------------------------------------


def change(flow: Flow, tenant: Any, **fields: Any) -> None:
    with tenant_scope(tenant):
        services.change_app(services.get_app(flow.app.app.pk, lock=True), actor="system", **fields)


def test_scope_that_an_app_loses_ends_in_every_token_at_once(flow: Flow, tenant: Any) -> None:
    tokens = flow.tokens()
    code = flow.decide()["code"]
    change(flow, tenant, scopes=[KeyScope.SESSIONS_READ])
    body = '{"name": "a", "colour": "red"}'
    assert call(tokens["access_token"]).status_code == 200
    assert call(tokens["access_token"], "/api/v1/labels", "POST", body).status_code == 403
    assert flow.redeem(code).json()["scope"] == "sessions:read"
    assert flow.refresh(tokens["refresh_token"]).json()["scope"] == "sessions:read"


def test_scope_that_an_app_gains_needs_consent(flow: Flow, tenant: Any) -> None:
    tokens = flow.tokens()
    change(flow, tenant, scopes=[KeyScope.SESSIONS_READ, KeyScope.SESSIONS_WRITE, KeyScope.CARDS_READ])
    assert call(tokens["access_token"], "/api/v1/cards").status_code == 403
    renewed = flow.refresh(tokens["refresh_token"]).json()
    assert "cards:read" not in renewed["scope"]
    assert flow.refresh(renewed["refresh_token"], scope="cards:read").status_code == 400


def test_code_ends_with_its_redirect_address(flow: Flow, tenant: Any) -> None:
    code = flow.decide()["code"]
    change(flow, tenant, redirect_uris=["https://app.example/new"])
    assert flow.redeem(code).status_code == 400
    assert flow.ask().status_code == 400


def test_change_of_an_app_is_checked_as_its_registration(flow: Flow, tenant: Any) -> None:
    for fields in (
        {"redirect_uris": []},
        {"redirect_uris": ["http://evil.test/"]},
        {"scopes": []},
        {"scopes": [KeyScope.CARDS_DECIDE]},
    ):
        with pytest.raises(SilasError) as refused:
            change(flow, tenant, **fields)
        assert refused.value.status == 422
    with tenant_scope(tenant):
        flow.app.app.refresh_from_db()
        assert flow.app.app.redirect_uris == [CALLBACK]
        services.revoke_app(flow.app.app.pk, actor="system")
    with pytest.raises(SilasError, match="revoked"):
        change(flow, tenant, name="Back")


def test_owner_changes_an_app_in_the_console(flow: Flow, tenant: Any, other_tenant: Any, owner: Any) -> None:
    address = reverse("console-app-change", args=[flow.app.app.pk])
    form = {"name": "Renamed", "redirect_uris": f"{CALLBACK}\nhttps://app.example/b", "scopes": ["sessions:read"]}
    assert browser(make_member(other_tenant, "owner")).post(address, form).status_code == 404
    assert browser(make_member(tenant, "approver")).post(address, form).status_code == 403
    assert browser(owner).post(address, {**form, "redirect_uris": "http://evil.test"}).status_code == 422
    assert browser(owner).post(address, form).status_code == 302
    with tenant_scope(tenant):
        flow.app.app.refresh_from_db()
        entry = AuditEntry.objects.get(event="oauth_app_changed")
    assert flow.app.app.name == "Renamed"
    assert flow.app.app.redirect_uris == [CALLBACK, "https://app.example/b"]
    assert flow.app.app.scopes == ["sessions:read"]
    assert entry.subject == f"oauth_app:{flow.app.app.pk}"
    page = browser(owner).get(reverse("console-apps")).content.decode()
    assert address in page
    assert 'value="Renamed"' in page


def test_app_is_changed_over_the_api_at_the_version_that_was_read(
    flow: Flow, tenant: Any, other_tenant: Any, owner: Any
) -> None:
    address = f"/api/v1/oauth-apps/{flow.app.app.pk}"

    def send(user: Any, body: str, **headers: str) -> Any:
        return browser(user).patch(address, body, "application/json", headers=headers)

    tag = browser(owner).get(address)["ETag"]
    changed = send(owner, '{"name": "Renamed"}', **{"if-match": tag})
    assert changed.status_code == 200
    assert changed.json()["name"] == "Renamed"
    assert changed["ETag"] == browser(owner).get(address)["ETag"]
    stale = send(owner, '{"name": "Stale"}', **{"if-match": tag})
    assert stale.status_code == 412
    assert send(owner, '{"is_confidential": true}').status_code == 400
    assert send(owner, '{"scopes": ["cards:decide"]}').status_code == 400
    assert send(make_member(other_tenant, "owner"), '{"name": "x"}').status_code == 404
    assert browser(owner).get(address).json()["name"] == "Renamed"


def test_limited_key_changes_no_app_that_may_do_more_than_the_key(flow: Flow, tenant: Any) -> None:
    with tenant_scope(tenant):
        secret = create_api_key("Sync", scopes=[KeyScope.API_KEYS_WRITE, KeyScope.SESSIONS_READ]).key
    moved = '{"redirect_uris": ["https://evil.test/"]}'
    answer = call(secret, f"/api/v1/oauth-apps/{flow.app.app.pk}", "PATCH", moved)
    assert answer.status_code == 403
    with tenant_scope(tenant):
        flow.app.app.refresh_from_db()
    assert flow.app.app.redirect_uris == [CALLBACK]


# -- floods ----------------------------------------------------------------------------------------------------------


def test_flood_of_token_requests_is_told_when_to_come_back(
    flow: Flow, tenant: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("apps.tenants.oauth.views.MOST_OF_A_CLIENT", 2)
    monkeypatch.setattr("apps.tenants.oauth.views.MOST_THERE", 4)
    there, elsewhere = f"2001:db8:{uuid4().hex[:4]}:{uuid4().hex[:4]}::1", f"2001:db8:0:{uuid4().hex[:4]}::1"

    def ask(app_id: str, address: str, path: str = "/oauth/token") -> Any:
        form = {"grant_type": "refresh_token", "refresh_token": "x", "client_id": app_id}
        return Client(REMOTE_ADDR=address).post(path, form)

    own = flow.app.app.client_id
    assert [ask(own, there).status_code for _ in range(2)] == [400, 400]
    refused = ask(own, there)
    assert refused.status_code == 429
    assert 1 <= int(refused["Retry-After"]) <= 60
    assert refused.json()["error"] == "temporarily_unavailable"
    assert ask(own, elsewhere).status_code == 400
    assert ask("unknown", there, "/oauth/revoke").status_code != 429
    assert ask("unknown", there).status_code != 429
    assert ask("another", there).status_code == 429
