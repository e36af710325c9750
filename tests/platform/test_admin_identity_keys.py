"""Owners register and retire the keys with which their site identifies its visitors, and only their own."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.test import Client

from apps.audit.models import AuditEntry
from apps.tenants.models import Deployment, IdentityKey
from apps.tenants.queries import verifying_keys
from kernel.tenancy import tenant_scope
from tests.factories.signed import key_pair
from tests.factories.tenants import make_deployment, make_member
from tests.platform.administration import browser_of, page_of


def _add(client: Client, deployment: Deployment, **fields: Any) -> str:
    given = {"deployment": deployment.pk, "key_id": "web", "algorithm": "HS256", "public_key": "", "gate": "is_known"}
    return client.post(page_of(IdentityKey, "add"), {**given, **fields}).content.decode()


def _secret_in(page: str) -> str:
    found = re.search(r'id="identity-secret"[^>]*value="([A-Za-z0-9_-]{43})"', page)
    return found[1] if found else ""


def _retire(browser: Client, row: IdentityKey) -> None:
    data = {"action": "retire", "_selected_action": [str(row.pk)], "post": "yes"}
    browser.post(page_of(IdentityKey, "changelist"), data)


def _rows(tenant: Any) -> list[IdentityKey]:
    with tenant_scope(tenant):
        return list(IdentityKey.objects.all())


@pytest.fixture
def secret(keeper: Client, deployment: Deployment) -> str:
    return _secret_in(_add(keeper, deployment))


def test_secret_is_shown_and_verifies(secret: str, deployment: Deployment, tenant: Any) -> None:
    with tenant_scope(tenant):
        (key,) = verifying_keys(deployment.pk)
    assert key.key == secret
    assert key.gate == "is_known"


def test_secret_is_never_shown_again_sealed_in_its_row_and_in_no_audit_entry(
    secret: str, keeper: Client, tenant: Any
) -> None:
    (row,) = _rows(tenant)
    for address in (
        page_of(IdentityKey, "changelist"),
        *(page_of(IdentityKey, n, row.pk) for n in ("change", "history")),
    ):
        page = keeper.get(address)
        assert page.status_code == 200
        assert secret not in page.content.decode()
    assert row.sealed_secret is not None
    assert secret.encode() not in bytes(row.sealed_secret)
    with tenant_scope(tenant):
        written = list(AuditEntry.objects.filter(event="identity_key_added").values_list("data", flat=True))
    assert written == ['{"algorithm":"HS256"}']


def test_answer_with_a_secret_is_never_kept(keeper: Client, deployment: Deployment) -> None:
    given = {"deployment": deployment.pk, "key_id": "web", "algorithm": "HS256", "public_key": "", "gate": "is_known"}
    assert "no-store" in keeper.post(page_of(IdentityKey, "add"), given)["Cache-Control"]


def test_secret_moved_to_another_row_does_not_open(secret: str, deployment: Deployment, tenant: Any) -> None:
    from kernel.errors import SilasError

    with tenant_scope(tenant):
        (row,) = IdentityKey.objects.all()
        IdentityKey.objects.create(
            deployment=deployment, key_id="copy", algorithm="HS256", sealed_secret=bytes(row.sealed_secret or b"")
        )
        with pytest.raises(SilasError, match="could not be opened"):
            verifying_keys(deployment.pk)


@pytest.mark.parametrize("algorithm", ["EdDSA", "ES256", "RS256"])
def test_public_key_is_registered(keeper: Client, deployment: Deployment, tenant: Any, algorithm: str) -> None:
    _add(keeper, deployment, algorithm=algorithm, public_key=key_pair(algorithm)[1])
    assert [row.algorithm for row in _rows(tenant)] == [algorithm]


@pytest.mark.parametrize(
    ("algorithm", "key"),
    [
        ("EdDSA", key_pair("ES256")[1]),
        ("ES256", key_pair("RS256")[1]),
        ("RS256", key_pair("EdDSA")[1]),
        ("RS256", key_pair("RS256")[0]),
        ("RS256", "not a key"),
        ("RS256", ""),
        ("HS256", "my own secret"),
        ("none", ""),
    ],
)
def test_key_that_does_not_fit_is_refused(
    keeper: Client, deployment: Deployment, tenant: Any, algorithm: str, key: str
) -> None:
    page = _add(keeper, deployment, algorithm=algorithm, public_key=key)
    assert "errorlist" in page and _rows(tenant) == []


def test_key_id_is_used_once(secret: str, keeper: Client, deployment: Deployment, tenant: Any) -> None:
    assert "errorlist" in _add(keeper, deployment) and len(_rows(tenant)) == 1


def test_key_of_another_tenants_deployment_is_refused(keeper: Client, other_tenant: Any, tenant: Any) -> None:
    _add(keeper, make_deployment(other_tenant))
    assert _rows(tenant) == []
    assert _rows(other_tenant) == []


def test_key_cannot_be_changed_and_is_retired_by_its_own_tenant_only(
    secret: str, keeper: Client, deployment: Deployment, tenant: Any, other_tenant: Any
) -> None:
    (row,) = _rows(tenant)
    assert keeper.post(page_of(IdentityKey, "change", row.pk), {"gate": "other"}).status_code == 403
    _retire(browser_of(make_member(other_tenant, "owner")), row)
    assert _rows(tenant)[0].retired_at is None
    _retire(keeper, row)
    with tenant_scope(tenant):
        assert verifying_keys(deployment.pk) == []


@pytest.mark.parametrize("role", ["approver", "agent", "viewer"])
def test_others_register_no_key(tenant: Any, deployment: Deployment, role: str) -> None:
    _add(browser_of(make_member(tenant, role)), deployment)
    assert _rows(tenant) == []
