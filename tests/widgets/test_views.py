"""What a visitor's browser loads, tried first by those who should get nothing."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client, override_settings

from apps.tenants.models import Deployment
from kernel.tenancy import tenant_scope
from tests.factories.tenants import make_deployment


def _ancestors(response: Any) -> str:
    return str(response["Content-Security-Policy"]).rpartition("frame-ancestors ")[2]


@pytest.fixture
def disabled(tenant: Any) -> Deployment:
    return make_deployment(tenant, enabled=False)


@pytest.mark.parametrize("key", ["no-such-key", "UPPER", "x", "%00", "%F0%9F%92%A5"])
def test_frame_of_an_unknown_key_may_be_framed_by_nobody(client: Client, database: None, key: str) -> None:
    assert _ancestors(client.get(f"/widget/v1/{key}/")) == "'none'"


def test_frame_of_a_disabled_deployment_may_be_framed_by_nobody(client: Client, disabled: Deployment) -> None:
    assert _ancestors(client.get(f"/widget/v1/{disabled.public_key}/")) == "'none'"


def test_frame_of_an_unknown_key_is_the_same_page(client: Client, deployment: Deployment) -> None:
    known = client.get(f"/widget/v1/{deployment.public_key}/")
    unknown = client.get("/widget/v1/no-such-key/")
    assert unknown.status_code == known.status_code
    assert unknown.content == known.content


def test_frame_of_a_deployment_may_be_framed_by_its_allowed_origins(client: Client, deployment: Deployment) -> None:
    assert _ancestors(client.get(f"/widget/v1/{deployment.public_key}/")) == "'self' http://site.test"


def test_frame_of_a_deployment_has_no_frame_option_that_overrules_the_list(
    client: Client, deployment: Deployment
) -> None:
    assert "X-Frame-Options" not in client.get(f"/widget/v1/{deployment.public_key}/")


def test_frame_of_another_tenant_may_not_be_framed_by_this_tenants_site(client: Client, other_tenant: Any) -> None:
    theirs = make_deployment(other_tenant, allowed_origins=["https://other.test"])
    assert "http://site.test" not in _ancestors(client.get(f"/widget/v1/{theirs.public_key}/"))


def test_frame_after_the_list_changed_follows_it_at_once(client: Client, tenant: Any, deployment: Deployment) -> None:
    client.get(f"/widget/v1/{deployment.public_key}/")
    with tenant_scope(tenant):
        Deployment.objects.filter(pk=deployment.pk).update(allowed_origins=["https://new.test"])
    assert _ancestors(client.get(f"/widget/v1/{deployment.public_key}/")) == "'self' https://new.test"


def test_frame_runs_own_modules_only(client: Client, deployment: Deployment) -> None:
    policy = client.get(f"/widget/v1/{deployment.public_key}/")["Content-Security-Policy"]
    assert "default-src 'none'; script-src 'self'; style-src 'self'" in policy


def test_appearance_of_an_unknown_key_is_404_in_the_one_shape(client: Client, database: None) -> None:
    response = client.get("/widget/v1/no-such-key/appearance/")
    assert response.status_code == 404
    assert response.json()["error"]["code"] == "not_found"


def test_appearance_of_a_disabled_deployment_is_404(client: Client, disabled: Deployment) -> None:
    assert client.get(f"/widget/v1/{disabled.public_key}/appearance/").status_code == 404


def test_appearance_says_how_it_looks_and_nothing_else(client: Client, tenant: Any) -> None:
    made = make_deployment(
        tenant, greeting="Hello.", suggestions=["One"], theme={"accent": "#0f7b6c"}, languages=["de"], persona="secret"
    )
    assert client.get(f"/widget/v1/{made.public_key}/appearance/").json() == {
        "title": "Desk",
        "theme": {"accent": "#0f7b6c"},
        "logo": None,
        "avatar": None,
        "greeting": "Hello.",
        "suggestions": ["One"],
        "languages": ["de"],
        "team": {"open": True, "opens_at": None},
    }


def test_loader_may_be_loaded_by_any_site(client: Client) -> None:
    response = client.get("/widget/v1/loader.js")
    assert response["Content-Type"] == "text/javascript; charset=utf-8"
    assert response["Cross-Origin-Resource-Policy"] == "cross-origin"


def test_loader_that_the_browser_has_is_not_sent_again(client: Client) -> None:
    etag = client.get("/widget/v1/loader.js")["ETag"]
    assert client.get("/widget/v1/loader.js", headers={"If-None-Match": etag}).status_code == 304


def test_frame_by_post_is_refused(client: Client, deployment: Deployment) -> None:
    assert client.post(f"/widget/v1/{deployment.public_key}/").status_code == 405


def test_demo_of_an_unknown_tenant_is_404(client: Client, database: None) -> None:
    assert client.get("/demo/no-such-tenant/").status_code == 404


def test_demo_of_a_tenant_whose_deployments_are_disabled_is_404(client: Client, disabled: Deployment) -> None:
    assert client.get(f"/demo/{disabled.tenant.slug}/").status_code == 404


@override_settings(DEMO=False)
def test_demo_on_a_real_platform_is_404(client: Client, deployment: Deployment) -> None:
    assert client.get(f"/demo/{deployment.tenant.slug}/").status_code == 404


def test_demo_embeds_the_tenants_widget_as_a_site_would(client: Client, deployment: Deployment) -> None:
    page = client.get(f"/demo/{deployment.tenant.slug}/").content.decode()
    tag = f'<script src="/widget/v1/loader.js" data-deployment="{deployment.public_key}" data-accent="#2c49d4" async>'
    assert tag in page


def test_demo_shows_a_tenants_name_escaped(client: Client, tenant: Any, deployment: Deployment) -> None:
    type(tenant).objects.filter(pk=tenant.pk).update(name="<script>alert(1)</script>")
    assert b"<script>alert" not in client.get(f"/demo/{tenant.slug}/").content


def test_landing_in_demo_mode_leads_to_the_demo_site(client: Client, tenant: Any) -> None:
    assert f'href="/demo/{tenant.slug}/"' in client.get("/").content.decode()


@override_settings(DEMO=False)
def test_landing_on_a_real_platform_names_no_customer(client: Client, tenant: Any) -> None:
    assert tenant.slug not in client.get("/").content.decode()
