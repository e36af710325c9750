"""A secret comes in only at its reference, once, in time and from its own tenant, and stays sealed."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest

from apps.audit.models import AuditEntry
from apps.connections import credentials
from apps.connections.enums import SetupState
from apps.connections.models import Credential, SetupRun
from kernel.clock import now
from kernel.errors import SilasError
from kernel.tenancy import tenant_scope
from tests.factories.connections import make_connection, make_pending, make_setup
from tests.factories.console import browser

CANARY = "canary-9d31f0-secret"


def send(user: Any, ref: Any, body: Any, **options: Any) -> Any:
    return browser(user, **options).post(f"/secrets/{ref}", body, content_type="application/json")


def told(answer: Any) -> tuple[int, str]:
    return answer.status_code, answer.json()["error"]["code"]


def test_secret_is_stored_and_nothing_of_it_is_answered(tenant: Any, owner: Any) -> None:
    pending = make_pending(tenant)
    answer = send(owner, pending.pk, {"value": CANARY})
    assert answer.status_code == 200
    assert answer.json() == {"stored": True}
    with tenant_scope(tenant):
        assert credentials.unseal_all(pending.setup.connection_id, setup=pending.setup) == {"value": CANARY}
        assert credentials.unseal_all(pending.setup.connection_id) == {}
        rows = [bytes(row.sealed) for row in Credential.objects.all()]
        entries = [entry.data + entry.subject for entry in AuditEntry.objects.filter(event="secret_stored")]
    assert CANARY.encode() not in b"".join(rows)
    assert len(entries) == 1
    assert str(pending.pk) in entries[0]


def test_unknown_reference_is_not_found(owner: Any) -> None:
    assert told(send(owner, uuid4(), {"value": "x"})) == (404, "not_found")


def test_foreign_reference_is_not_found(owner: Any, other_tenant: Any) -> None:
    assert told(send(owner, make_pending(other_tenant).pk, {"value": "x"})) == (404, "not_found")


def test_reference_is_used_once(tenant: Any, owner: Any) -> None:
    pending = make_pending(tenant)
    send(owner, pending.pk, {"value": "first"})
    assert told(send(owner, pending.pk, {"value": "second"})) == (409, "secret_stored_already")
    with tenant_scope(tenant):
        assert credentials.unseal_all(pending.setup.connection_id, setup=pending.setup) == {"value": "first"}


def test_reference_runs_out(tenant: Any, owner: Any) -> None:
    pending = make_pending(tenant, expires_at=now() - timedelta(seconds=1))
    assert told(send(owner, pending.pk, {"value": "x"})) == (409, "secret_expired")


def test_reference_of_a_conversation_that_is_over_stores_nothing(tenant: Any, owner: Any) -> None:
    pending = make_pending(tenant)
    with tenant_scope(tenant):
        SetupRun.objects.update(state=SetupState.CANCELLED)
    assert told(send(owner, pending.pk, {"value": "x"})) == (409, "secret_expired")


@pytest.mark.parametrize(("size", "status"), [(0, 400), (64 * 1024, 200), (64 * 1024 + 1, 400)])
def test_size_has_a_limit(tenant: Any, owner: Any, size: int, status: int) -> None:
    assert send(owner, make_pending(tenant).pk, {"value": "x" * size}).status_code == status


@pytest.mark.parametrize("body", [{}, {"value": None}, {"value": ["x"]}, [], "x"])
def test_garbage_is_refused(tenant: Any, owner: Any, body: Any) -> None:
    assert send(owner, make_pending(tenant).pk, body).status_code == 400


def test_viewer_and_stranger_store_nothing(tenant: Any, viewer: Any, stranger: Any) -> None:
    pending = make_pending(tenant)
    assert [send(user, pending.pk, {"value": "x"}).status_code for user in (viewer, stranger)] == [403, 403]


def test_nobody_is_asked_to_log_in(tenant: Any) -> None:
    assert told(send(None, make_pending(tenant).pk, {"value": "x"})) == (401, "not_authenticated")


def test_login_without_csrf_token_stores_nothing(tenant: Any, owner: Any) -> None:
    pending = make_pending(tenant)
    assert send(owner, pending.pk, {"value": "x"}, csrf=True).status_code == 403
    with tenant_scope(tenant):
        assert Credential.objects.count() == 0


def test_credential_moved_to_another_name_does_not_open(tenant: Any) -> None:
    connection = make_connection(tenant)
    with tenant_scope(tenant):
        credentials.store(connection.pk, {"a": "1"})
        Credential.objects.update(name="b")
        with pytest.raises(SilasError) as refused:
            credentials.unseal_all(connection.pk)
    assert refused.value.code == "seal_broken"


def test_credential_copied_to_another_tenant_does_not_open(tenant: Any, other_tenant: Any) -> None:
    mine, theirs = make_connection(tenant), make_connection(other_tenant)
    with tenant_scope(tenant):
        credentials.store(mine.pk, {"a": "1"})
        sealed = bytes(Credential.objects.get().sealed)
    with tenant_scope(other_tenant):
        credentials.store(theirs.pk, {"a": "2"})
        Credential.objects.update(sealed=sealed)
        with pytest.raises(SilasError):
            credentials.unseal_all(theirs.pk)


def test_promoted_credentials_take_the_old_ones_place(tenant: Any) -> None:
    connection = make_connection(tenant)
    setup = make_setup(connection)
    with tenant_scope(tenant):
        credentials.store(connection.pk, {"token": "old", "extra": "kept"})
        credentials.store(connection.pk, {"token": "new"}, setup=setup)
        credentials.promote(setup)
        assert credentials.unseal_all(connection.pk) == {"token": "new", "extra": "kept"}


@pytest.mark.parametrize(
    "handed", [b"[]", b"{", b'{"a": 1}', b'{"a": ""}', b'{"": "x"}', b'{"a": {"b": "c"}}', b"\xff\xfe", b"[" * 5000]
)
def test_credentials_that_cannot_be_read_are_refused_without_a_word_of_them(handed: bytes) -> None:
    with pytest.raises(SilasError) as refused:
        credentials.parse_handed_back(handed)
    assert refused.value.code == "credentials_unreadable"
    assert refused.value.extra == {}
