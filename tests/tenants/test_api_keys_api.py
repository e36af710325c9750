"""API keys over the REST API: scopes, expiry, rotation with overlap, and no key with more rights than its maker."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver

from apps.audit.enums import AuditEvent
from apps.audit.models import AuditEntry
from apps.tenants import queries, services
from apps.tenants.api_auth import ApiView, authenticate_bearer
from apps.tenants.enums import KeyScope
from apps.tenants.models import ApiKey
from kernel import clock
from kernel.error_codes import ErrorCode
from kernel.errors import SilasError
from kernel.tenancy import tenant_scope
from tests.factories.tenants import make_tenant

KEYS = "/api/v1/api-keys"


def send(key: str, method: str, path: str, body: Any = None) -> tuple[int, Any]:
    headers = {"authorization": f"Bearer {key}"}
    answer = Client().generic(method, path, json.dumps(body or {}), "application/json", headers=headers)
    return answer.status_code, answer.json() if answer.content else None


def make_key(tenant: Any, *scopes: KeyScope, **more: Any) -> services.NewApiKey:
    with tenant_scope(tenant):
        return services.create_api_key("Test", scopes=scopes, **more)


def is_valid(key: str) -> bool:
    try:
        authenticate_bearer(key)
    except SilasError:
        return False
    return True


def views() -> Iterator[tuple[str, type]]:
    """Every view of the REST API with its name."""

    def below(patterns: list[Any]) -> Iterator[tuple[str, type]]:
        for pattern in patterns:
            if isinstance(pattern, URLResolver):
                yield from below(pattern.url_patterns)
            elif isinstance(pattern, URLPattern) and hasattr(pattern.callback, "view_class"):
                yield str(pattern.name), pattern.callback.view_class

    yield from below(get_resolver().url_patterns)


def test_every_view_names_the_scopes_that_it_needs() -> None:
    """A key with scopes reaches what a view declares; without a declaration a program would need an owner's rights."""
    found = [(name, view) for name, view in views() if issubclass(view, ApiView)]
    assert len(found) > 60
    assert [name for name, view in found if view.reading is None or view.writing is None] == []


def test_refusal_names_the_missing_scope(tenant: Any) -> None:
    key = make_key(tenant, KeyScope.CARDS_READ).key
    assert send(key, "GET", "/api/v1/cards")[0] == 200
    status, said = send(key, "GET", "/api/v1/audit")
    assert status == 403
    assert said["error"]["code"] == "forbidden_scope"
    assert said["error"]["extra"] == {"scope": "audit:read"}


def test_key_is_created_read_and_revoked(tenant: Any) -> None:
    root = make_key(tenant).key
    status, made = send(root, "POST", KEYS, {"name": "Shop", "scopes": ["cards:read"]})
    assert status == 201
    assert made["secret"][:3] == "sk_"
    one = f"{KEYS}/{made['api_key']['id']}"
    assert "secret" not in send(root, "GET", one)[1]
    assert is_valid(made["secret"])
    assert send(root, "DELETE", one)[0] == 204
    assert not is_valid(made["secret"])
    assert [key["name"] for key in send(root, "GET", KEYS)[1]["api_keys"]] == ["Shop", "Test"]


@pytest.mark.parametrize("wanted", [{"scopes": ["audit:read"]}, {"scopes": []}, {"scopes": ["cards:read"]}])
def test_key_makes_none_with_more_rights_or_a_longer_life(tenant: Any, wanted: dict[str, Any]) -> None:
    scopes = (KeyScope.API_KEYS_WRITE, KeyScope.CARDS_READ)
    ending = make_key(tenant, *scopes, expires_at=clock.now() + timedelta(days=1)).key
    assert send(ending, "POST", KEYS, {"name": "More", **wanted})[0] == 403


def test_key_touches_no_stronger_key(tenant: Any) -> None:
    weak, root = make_key(tenant, KeyScope.API_KEYS_WRITE, KeyScope.CARDS_READ).key, make_key(tenant)
    for method, path in (("DELETE", f"{KEYS}/{root.row.pk}"), ("POST", f"{KEYS}/{root.row.pk}/rotate")):
        assert send(weak, method, path)[0] == 403
    assert is_valid(root.key)


def test_rotation_keeps_the_secret_before_for_the_overlap_only(tenant: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    first = make_key(tenant)
    status, second = send(first.key, "POST", f"{KEYS}/{first.row.pk}/rotate", {"overlap_hours": 1})
    assert status == 200
    assert is_valid(first.key)
    assert is_valid(second["secret"])
    later = clock.now() + timedelta(hours=1, seconds=1)
    monkeypatch.setattr(queries, "now", lambda: later)
    assert not is_valid(first.key)
    assert is_valid(second["secret"])


def test_rotation_at_once_and_a_second_one_end_earlier_secrets(tenant: Any) -> None:
    first = make_key(tenant)
    with tenant_scope(tenant):
        second = services.rotate_api_key(first.row, overlap=timedelta(hours=1))
        third = services.rotate_api_key(first.row)
    assert [is_valid(each) for each in (first.key, second.key, third.key)] == [False, False, True]
    with tenant_scope(tenant):
        assert AuditEntry.objects.filter(event=AuditEvent.API_KEY_ROTATED).count() == 2


def test_expired_key_is_refused_and_cannot_be_rotated(tenant: Any) -> None:
    made = make_key(tenant, expires_at=clock.now() + timedelta(minutes=1))
    assert is_valid(made.key)
    with tenant_scope(tenant):
        ApiKey.objects.filter(pk=made.row.pk).update(expires_at=clock.now())
        with pytest.raises(SilasError) as refused:
            services.rotate_api_key(made.row)
    assert refused.value.code == ErrorCode.API_KEY_ENDED
    assert not is_valid(made.key)


@pytest.mark.parametrize(
    ("path", "body", "expected"),
    [
        ("", {"name": "x", "scopes": ["everything"]}, 400),
        ("", {"name": "x", "expires_at": "2020-01-01T00:00:00Z"}, 422),
        ("", {"name": "x", "role": "owner"}, 400),
        ("/{key}/rotate", {"overlap_hours": 169}, 400),
    ],
)
def test_bad_input_is_refused(tenant: Any, path: str, body: dict[str, Any], expected: int) -> None:
    made = make_key(tenant)
    assert send(made.key, "POST", KEYS + path.format(key=made.row.pk), body)[0] == expected


def test_foreign_key_is_not_found(tenant: Any) -> None:
    mine, foreign = make_key(tenant), make_key(make_tenant())
    for method, path in (("GET", ""), ("DELETE", ""), ("POST", "/rotate")):
        assert send(mine.key, method, f"{KEYS}/{foreign.row.pk}{path}")[0] == 404
