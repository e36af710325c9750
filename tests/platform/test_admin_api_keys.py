"""An API key is shown once, belongs to its tenant, and can be taken back."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.test import Client

from apps.tenants.models import ApiKey
from apps.tenants.queries import api_key
from kernel.tenancy import tenant_scope
from tests.factories.tenants import make_member
from tests.platform.administration import browser_of, page_of


def _key_in(page: str) -> str:
    found = re.search(r"sk_[A-Za-z0-9_-]{43}", page)
    return found[0] if found else ""


@pytest.fixture
def new_key(keeper: Client) -> str:
    return _key_in(keeper.post(page_of(ApiKey, "add"), {"name": "Website"}).content.decode())


def test_new_api_key_is_shown_and_opens_its_tenant(new_key: str, tenant: Any) -> None:
    found = api_key(new_key)
    assert found is not None and found.tenant == tenant


def test_api_key_is_never_shown_again(new_key: str, keeper: Client, tenant: Any) -> None:
    with tenant_scope(tenant):
        row = ApiKey.objects.get()
    pages = [keeper.get(page_of(ApiKey, "changelist")), keeper.get(page_of(ApiKey, "change", row.pk))]
    pages.append(keeper.get(page_of(ApiKey, "history", row.pk)))
    assert [new_key in page.content.decode() or row.hashed in page.content.decode() for page in pages] == [False] * 3


def test_answer_with_an_api_key_is_never_kept(keeper: Client) -> None:
    answer = keeper.post(page_of(ApiKey, "add"), {"name": "Website"})
    assert "no-store" in answer["Cache-Control"] and not _key_in(str(answer.cookies))


def test_api_key_made_by_a_superuser_belongs_to_the_chosen_tenant(root: Client, other_tenant: Any) -> None:
    page = root.post(page_of(ApiKey, "add"), {"name": "Website", "tenant": other_tenant.pk})
    found = api_key(_key_in(page.content.decode()))
    assert found is not None and found.tenant == other_tenant


def test_api_key_cannot_be_changed(new_key: str, keeper: Client, tenant: Any) -> None:
    with tenant_scope(tenant):
        row = ApiKey.objects.get()
    assert keeper.post(page_of(ApiKey, "change", row.pk), {"name": "Other"}).status_code == 403


def test_chosen_api_key_is_revoked(new_key: str, keeper: Client, tenant: Any) -> None:
    with tenant_scope(tenant):
        row = ApiKey.objects.get()
    keeper.post(page_of(ApiKey, "changelist"), {"action": "revoke", "_selected_action": [str(row.pk)], "post": "yes"})
    assert api_key(new_key) is None


def test_foreign_api_key_cannot_be_revoked(new_key: str, tenant: Any, other_tenant: Any) -> None:
    with tenant_scope(tenant):
        row = ApiKey.objects.get()
    stranger = browser_of(make_member(other_tenant, "owner"))
    stranger.post(page_of(ApiKey, "changelist"), {"action": "revoke", "_selected_action": [str(row.pk)], "post": "yes"})
    assert api_key(new_key) is not None
