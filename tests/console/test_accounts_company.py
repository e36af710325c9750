"""Single sign-on: who the provider lets in and where, and forged answers that are refused."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qs, urlsplit
from uuid import uuid4

import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from django.urls import reverse

from apps.audit.enums import AuditEvent
from apps.audit.models import AuditEntry
from apps.tenants import providers
from apps.tenants.models import LoginProvider, Membership, ProviderAccount, Tenant, User
from kernel.errors import SilasError
from kernel.tenancy import tenant_scope
from tests.factories.accounts import guest, is_in
from tests.factories.console import browser
from tests.factories.tenants import make_member, make_user
from tests.fakes.oidc import CLIENT_ID, SECRET, Provider, provider


@pytest.fixture(scope="module")
def server() -> Iterator[Provider]:
    with provider() as known:
        yield known


@pytest.fixture
def company(server: Provider, tenant: Any) -> Provider:
    """The provider, honest again, as the tenant's own."""
    server.signs_with, server.algorithm, server.status = None, "RS256", 200
    server.says, server.discovery, server.header = {}, {}, {}
    _save(tenant, server.issuer)
    return server


def _save(tenant: Any, issuer: str, **changes: Any) -> LoginProvider:
    said = {
        "client_id": CLIENT_ID,
        "secret": SECRET,
        "domains": ["acme.test"],
        "default_role": "agent",
        "enabled": True,
        "actor": "system",
        **changes,
    }
    with tenant_scope(tenant):
        return providers.save_provider(issuer=issuer, **said)


def _new() -> dict[str, Any]:
    return {"sub": uuid4().hex, "email": f"{uuid4().hex}@acme.test", "email_verified": True, "name": "Ada Lovelace"}


def _away(client: Any, tenant: Any, **query: str) -> str:
    return str(client.get(reverse("console-company-go", args=[tenant.slug]), query)["Location"])


def _come(company: Provider, tenant: Any, person: dict[str, Any], client: Any = None) -> Any:
    client = client or guest()
    return client.get(company.let_in(_away(client, tenant), **person))


def _refusals(tenant: Any) -> list[str]:
    with tenant_scope(tenant):
        entries = AuditEntry.objects.filter(event=AuditEvent.LOGIN_PROVIDER_REFUSED)
        return [entry.data for entry in entries]


def test_newcomer_of_the_domain_becomes_a_member_and_is_in(company: Provider, tenant: Any) -> None:
    client, person = guest(), _new()
    _come(company, tenant, person, client)
    user = User.objects.get(email=person["email"])
    with tenant_scope(tenant):
        assert Membership.objects.get(user=user).role == "agent"
    assert is_in(client, user)
    assert not user.has_usable_password()


def test_browser_is_sent_away_with_pkce_state_and_nonce(company: Provider, tenant: Any) -> None:
    query = parse_qs(urlsplit(_away(guest(), tenant)).query)
    assert query["code_challenge_method"] == ["S256"]
    assert all(len(query[name][0]) >= 43 for name in ("code_challenge", "state", "nonce"))


def test_person_is_known_again_under_another_address(company: Provider, tenant: Any) -> None:
    person = _new()
    _come(company, tenant, person)
    client = guest()
    _come(company, tenant, {**person, "email": "renamed@acme.test"}, client)
    assert is_in(client, User.objects.get(email=person["email"]))


def test_member_with_a_verified_address_is_linked(company: Provider, tenant: Any) -> None:
    user = make_member(tenant, "viewer")
    _save(tenant, company.issuer, domains=["example.test"])
    client = guest()
    _come(company, tenant, {**_new(), "email": user.email.upper()}, client)
    assert is_in(client, user)


@pytest.mark.parametrize("verified", [False, None, "true", 1])
def test_member_with_an_unverified_address_is_not_linked(company: Provider, tenant: Any, verified: Any) -> None:
    user = make_member(tenant, "owner")
    _save(tenant, company.issuer, domains=["example.test"])
    client = guest()
    response = _come(company, tenant, {**_new(), "email": user.email, "email_verified": verified}, client)
    assert response.status_code == 403
    assert not is_in(client, user)
    with tenant_scope(tenant):
        assert not ProviderAccount.objects.exists()


def test_account_that_is_no_member_is_not_let_in(company: Provider, tenant: Any) -> None:
    """Another company's owner may have made it, and know its password."""
    user = make_user()
    _save(tenant, company.issuer, domains=["example.test"])
    assert _come(company, tenant, {**_new(), "email": user.email}).status_code == 403


def test_address_of_another_domain_is_refused(company: Provider, tenant: Any) -> None:
    person = {**_new(), "email": "mallory@acme.test.evil.test"}
    assert _come(company, tenant, person).status_code == 403
    assert not User.objects.filter(email=person["email"]).exists()


def test_superuser_is_not_let_in(company: Provider, tenant: Any) -> None:
    user = make_member(tenant, "owner")
    user.is_superuser = user.is_staff = True
    user.save()
    _save(tenant, company.issuer, domains=["example.test"])
    client = guest()
    assert _come(company, tenant, {**_new(), "email": user.email}, client).status_code == 403
    assert not is_in(client, user)


def test_removed_member_is_not_let_in_again(company: Provider, tenant: Any) -> None:
    person = _new()
    _come(company, tenant, person)
    with tenant_scope(tenant):
        Membership.objects.filter(user__email=person["email"]).delete()
    assert _come(company, tenant, person).status_code == 403


def test_blocked_person_is_not_let_in(company: Provider, tenant: Any) -> None:
    person = _new()
    _come(company, tenant, person)
    User.objects.filter(email=person["email"]).update(is_active=False)
    assert _come(company, tenant, person).status_code == 403


# --- what it opens


@pytest.fixture
def two_jobs(company: Provider, tenant: Any, other_tenant: Any) -> Any:
    """A member of two tenants, who came by the login of one."""
    user = make_member(other_tenant, "owner")
    with tenant_scope(tenant):
        Membership.objects.create(user=user, role="agent")
    _save(tenant, company.issuer, domains=["example.test"])
    client = guest()
    _come(company, tenant, {**_new(), "email": user.email}, client)
    assert is_in(client, user)
    return client


def test_login_opens_its_own_company_only(two_jobs: Any, tenant: Any, other_tenant: Any) -> None:
    assert two_jobs.post(reverse("console-tenant"), {"tenant": other_tenant.slug}).status_code == 404
    page = two_jobs.get(reverse("console-inbox")).content.decode()
    assert tenant.name in page
    assert other_tenant.name not in page


def test_login_opens_no_administration_of_another_company(two_jobs: Any) -> None:
    assert two_jobs.get(reverse("admin:index")).status_code == 403


def test_login_opens_no_api_of_another_company(two_jobs: Any) -> None:
    assert two_jobs.get("/api/v1/gates").status_code == 403


@pytest.mark.parametrize("name", ["name", "password", "app", "codes", "passkey-begin"])
def test_login_changes_nothing_of_the_account(two_jobs: Any, name: str) -> None:
    response = two_jobs.post(reverse(f"console-account-{name}"), {"password": "a-long-password"})
    assert response.status_code == 403


def test_login_joins_no_further_company(two_jobs: Any, other_tenant: Any) -> None:
    from apps.tenants import invitations

    user = User.objects.get(pk=two_jobs.session["_auth_user_id"])
    third = Tenant.objects.create(slug=f"t-{uuid4().hex[:12]}", name="Third")
    owner = make_member(third, "owner")
    with tenant_scope(third):
        link = invitations.new_link(
            invitations.invite(user.email, role=invitations.Role.AGENT, by=owner, actor=owner.actor).pk
        )
    assert link is not None
    assert two_jobs.post(link.path).status_code == 409


def test_company_that_requires_a_second_factor_leaves_it_to_its_provider(company: Provider, tenant: Any) -> None:
    Tenant.objects.filter(pk=tenant.pk).update(second_factor_required=True)
    client = guest()
    _come(company, tenant, _new(), client)
    assert client.get(reverse("console-inbox")).status_code == 200


# --- lies


@pytest.mark.parametrize(
    "says",
    [
        {"aud": "somebody-else"},
        {"aud": [CLIENT_ID, "another"]},
        {"iss": "https://evil.test"},
        {"exp": 1},
        {"exp": None},
        {"nonce": "another"},
        {"nonce": None},
        {"sub": None},
        {"iat": 99999999999},
    ],
    ids=str,
)
def test_token_that_says_something_else_is_refused(company: Provider, tenant: Any, says: dict[str, Any]) -> None:
    company.says = says
    client = guest()
    assert _come(company, tenant, _new(), client).status_code == 403
    assert "_auth_user_id" not in client.session


def test_token_of_another_key_is_refused(company: Provider, tenant: Any) -> None:
    company.signs_with = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    assert _come(company, tenant, _new()).status_code == 403


@pytest.mark.parametrize(("algorithm", "key"), [("none", ""), ("HS256", SECRET * 3)])
def test_token_without_a_real_signature_is_refused(company: Provider, tenant: Any, algorithm: str, key: str) -> None:
    company.algorithm, company.signs_with = algorithm, key
    assert _come(company, tenant, _new()).status_code == 403


def test_refused_token_is_written_down(company: Provider, tenant: Any) -> None:
    company.says = {"aud": "somebody-else"}
    _come(company, tenant, _new())
    assert _refusals(tenant) == ['{"reason":"provider_refused"}']


def test_way_back_of_another_browser_is_refused(company: Provider, tenant: Any) -> None:
    back = company.let_in(_away(guest(), tenant), **_new())
    thief = guest()
    _away(thief, tenant)
    assert thief.get(back).status_code == 403


def test_way_back_is_good_once(company: Provider, tenant: Any) -> None:
    client = guest()
    back = company.let_in(_away(client, tenant), **_new())
    assert [client.get(back).status_code for _ in range(2)] == [302, 403]


def test_way_back_to_another_company_is_refused(company: Provider, tenant: Any, other_tenant: Any) -> None:
    _save(other_tenant, company.issuer)
    client = guest()
    back = company.let_in(_away(client, tenant), **_new())
    assert client.get(back.replace(tenant.slug, other_tenant.slug)).status_code == 403


@pytest.mark.parametrize("query", ["", "?state=é&code=x", "?state=x", "?error=access_denied&state=x"])
def test_way_back_of_nobody_is_refused(company: Provider, tenant: Any, query: str) -> None:
    assert guest().get(reverse("console-company-back", args=[tenant.slug]) + query).status_code == 403


def test_next_of_another_site_is_not_followed(company: Provider, tenant: Any) -> None:
    client = guest()
    back = company.let_in(_away(client, tenant, next="//evil.test/"), **_new())
    assert client.get(back)["Location"] == reverse("console")


@pytest.mark.parametrize(
    "discovery",
    [
        {"issuer": "https://evil.test"},
        {"token_endpoint": "file:///etc/passwd"},
        {"authorization_endpoint": "javascript:x"},
    ],
    ids=str,
)
def test_discovery_that_lies_is_refused(company: Provider, tenant: Any, discovery: dict[str, Any]) -> None:
    company.discovery = discovery
    client = guest()
    response = client.get(reverse("console-company-go", args=[tenant.slug]))
    if response.status_code == 302:
        response = client.get(company.let_in(response["Location"], **_new()))
    assert response.status_code == 502


def test_provider_that_is_down_is_said_in_words(company: Provider, tenant: Any) -> None:
    company.status = 503
    response = guest().get(reverse("console-company-go", args=[tenant.slug]))
    assert response.status_code == 502
    assert "responding correctly" in response.content.decode()


def test_provider_inside_of_the_house_is_not_called(company: Provider, tenant: Any, settings: Any) -> None:
    settings.LOGIN_PROVIDERS_PRIVATE = False
    assert guest().get(reverse("console-company-go", args=[tenant.slug])).status_code == 502


# --- the page


@pytest.mark.parametrize("slug", ["nobody", "x" * 90, "ACME;--"])
def test_unknown_company_looks_like_one_without_a_login(other_tenant: Any, slug: str) -> None:
    pages = [guest().get(reverse("console-company"), {"company": one}) for one in (slug, other_tenant.slug)]
    assert [page.status_code for page in pages] == [404, 404]
    assert pages[0].content == pages[1].content


def test_company_that_was_switched_off_lets_nobody_in(company: Provider, tenant: Any) -> None:
    client = guest()
    back = company.let_in(_away(client, tenant), **_new())
    _save(tenant, company.issuer, enabled=False)
    assert client.get(back).status_code == 404


def test_owner_sets_the_login_up(company: Provider, tenant: Any, owner: Any) -> None:
    said = {"issuer": company.issuer, "client_id": "other", "domains": "acme.test, acme.example", "enabled": "on"}
    browser(owner).post(reverse("console-provider"), {**said, "default_role": "viewer"})
    with tenant_scope(tenant):
        row = LoginProvider.objects.get()
    assert row.client_id == "other"
    assert row.domains == ["acme.example", "acme.test"]
    assert providers.secret_of(row) == SECRET


def test_secret_is_never_shown(company: Provider, owner: Any) -> None:
    assert SECRET not in browser(owner).get(reverse("console-member-logins")).content.decode()


def test_secret_does_not_go_to_another_issuer(company: Provider, tenant: Any, owner: Any) -> None:
    """A member who changes the issuer must not get the secret sent there."""
    with pytest.raises(SilasError, match="secret"):
        _save(tenant, "http://evil.test", secret="")


@pytest.mark.parametrize(
    "changes",
    [{"domains": []}, {"domains": ["com"]}, {"domains": ["*.test"]}, {"default_role": "owner"}, {"client_id": " "}],
    ids=str,
)
def test_login_that_lets_too_many_in_is_refused(company: Provider, tenant: Any, changes: dict[str, Any]) -> None:
    with pytest.raises(SilasError):
        _save(tenant, company.issuer, **changes)


@pytest.mark.parametrize("issuer", ["http://acme.test", "https://localhost", "https://10.0.0.1", "https://redis", "x"])
def test_issuer_inside_of_the_house_is_refused(tenant: Any, settings: Any, issuer: str) -> None:
    settings.LOGIN_PROVIDERS_PRIVATE = False
    with pytest.raises(SilasError, match="issuer"):
        _save(tenant, issuer)
