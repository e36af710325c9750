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


@pytest.fixture
def row(new_key: str, tenant: Any) -> ApiKey:
    with tenant_scope(tenant):
        found: ApiKey = ApiKey.objects.get()
        return found


def _revoke(browser: Client, row: ApiKey) -> None:
    browser.post(page_of(ApiKey, "changelist"), {"action": "revoke", "_selected_action": [str(row.pk)], "post": "yes"})


def test_new_api_key_is_shown_and_opens_its_tenant(new_key: str, tenant: Any) -> None:
    found = api_key(new_key)
    assert found is not None and found.tenant == tenant


def test_api_key_is_never_shown_again(new_key: str, keeper: Client, row: ApiKey) -> None:
    addresses = [page_of(ApiKey, "changelist"), page_of(ApiKey, "change", row.pk), page_of(ApiKey, "history", row.pk)]
    for address in addresses:
        page = keeper.get(address).content.decode()
        assert new_key not in page
        assert row.hashed not in page


def test_answer_with_an_api_key_is_never_kept(keeper: Client) -> None:
    answer = keeper.post(page_of(ApiKey, "add"), {"name": "Website"})
    assert "no-store" in answer["Cache-Control"]
    assert not _key_in(str(answer.cookies))


def test_api_key_made_by_a_superuser_belongs_to_the_chosen_tenant(root: Client, other_tenant: Any) -> None:
    page = root.post(page_of(ApiKey, "add"), {"name": "Website", "tenant": other_tenant.pk})
    found = api_key(_key_in(page.content.decode()))
    assert found is not None and found.tenant == other_tenant


def test_api_key_cannot_be_changed_and_is_revoked_by_its_own_tenant_only(
    new_key: str, row: ApiKey, keeper: Client, other_tenant: Any
) -> None:
    assert keeper.post(page_of(ApiKey, "change", row.pk), {"name": "Other"}).status_code == 403
    _revoke(browser_of(make_member(other_tenant, "owner")), row)
    assert api_key(new_key) is not None
    _revoke(keeper, row)
    assert api_key(new_key) is None
