"""Credentials in a keyring or an outside vault: given sealed, read by scripts only, and never lost to a transaction
that is rolled back or a keyring that is locked.

The keyring is a backend of the library itself, kept in memory.
"""

from __future__ import annotations

import base64
import sys
from collections.abc import Iterator
from typing import Any, ClassVar

import keyring
import pytest
from keyring.backend import KeyringBackend
from keyring.backends.fail import Keyring as NoKeyring
from keyring.errors import KeyringLocked, PasswordDeleteError

from apps.connections import credentials
from apps.connections.enums import Backend, ConnectionStatus
from apps.connections.models import Connection, Credential, PendingSecret
from apps.tenants import vault
from kernel.clock import now
from kernel.errors import SilasError
from kernel.tenancy import tenant_scope
from tests.connections.test_health import linked
from tests.connections.test_secrets import CANARY, send, told
from tests.connections.test_setup import held
from tests.factories.connections import check_due, keep, make_connection, make_pending, opened, reread


class InMemory(KeyringBackend):
    """`locked`: the keyring is locked; `after`: it locks itself after so many more calls."""

    priority = 1

    def __init__(self) -> None:
        super().__init__()
        self.kept: dict[tuple[str, str], str] = {}
        self.locked = False
        self.after = -1

    def _ask(self) -> None:
        if self.locked or self.after == 0:
            raise KeyringLocked(f"the keyring with {CANARY} is locked")
        self.after -= 1

    def get_password(self, service: str, username: str) -> str | None:
        self._ask()
        return self.kept.get((service, username))

    def set_password(self, service: str, username: str, password: str) -> None:
        self._ask()
        self.kept[service, username] = password

    def delete_password(self, service: str, username: str) -> None:
        self._ask()
        if self.kept.pop((service, username), None) is None:
            raise PasswordDeleteError("not found")

    def everything(self) -> bytes:
        return b"".join(base64.b64decode(value) + str(key).encode() for key, value in self.kept.items())


@pytest.fixture
def ring(settings: Any) -> Iterator[InMemory]:
    settings.CREDENTIAL_BACKEND = "keyring"
    before, made = keyring.get_keyring(), InMemory()
    keyring.set_keyring(made)
    yield made
    keyring.set_keyring(before)


def refused(row: Connection) -> str:
    with pytest.raises(SilasError) as no:
        opened(row)
    assert CANARY not in str(no.value) + repr(no.value.__cause__)
    return no.value.code


def test_keyring_has_the_value_sealed_and_the_row_nothing_of_it(tenant: Any, ring: InMemory) -> None:
    row = make_connection(tenant)
    keep(row, token=CANARY)
    with tenant_scope(tenant):
        kept = Credential.objects.get()
    assert opened(row) == {"token": CANARY}
    assert kept.backend == Backend.KEYRING
    assert len(ring.kept) == 1
    assert CANARY.encode() not in ring.everything() + bytes(kept.sealed)


def test_value_that_was_replaced_and_one_that_was_removed_are_gone_from_the_keyring(
    tenant: Any, ring: InMemory
) -> None:
    row = make_connection(tenant)
    keep(row, token="first")
    keep(row, token="second")
    before = len(ring.kept)
    with tenant_scope(tenant):
        credentials.drop_all(row.pk)
    assert before == 1
    assert ring.kept == {}


def test_script_of_a_guarded_call_gets_what_the_keyring_has(tenant: Any, ring: InMemory) -> None:
    """A renewal reads it, and what it hands back takes its place."""
    counts = 'hand_over(token=held["token"] + "+"); say({"success": True})'
    row = linked(tenant, scripts={"refresh_token": counts}, token_expires_at=now())
    assert check_due(tenant) == 1
    assert opened(row) == {"token": "first+"}
    assert len(ring.kept) == 1


def test_setup_puts_its_credentials_into_the_keyring(tenant: Any, owner: Any, ring: InMemory) -> None:
    row, setup = held(tenant, owner)
    assert row.status == ConnectionStatus.ACTIVE
    assert setup.failure is None
    assert len(ring.kept) == 1


def test_new_data_key_seals_what_the_keyring_has(tenant: Any, ring: InMemory) -> None:
    row = make_connection(tenant)
    keep(row, token=CANARY, other="word")
    before = dict(ring.kept)
    with tenant_scope(tenant):
        assert vault.rotate_data_key(actor="system") == 2
    assert opened(row) == {"token": CANARY, "other": "word"}
    assert len(ring.kept) == 2
    assert not set(before.values()) & set(ring.kept.values())


def test_keyring_that_locks_in_the_middle_of_a_new_data_key_loses_nothing(tenant: Any, ring: InMemory) -> None:
    row = make_connection(tenant)
    keep(row, token=CANARY, other="word")
    ring.after = 3
    with pytest.raises(SilasError), tenant_scope(tenant):
        vault.rotate_data_key(actor="system")
    ring.after = -1
    assert opened(row) == {"token": CANARY, "other": "word"}


def _undone(row: Connection, change: Any) -> None:
    with tenant_scope(row.tenant_id):
        change(row)
        raise ZeroDivisionError


@pytest.mark.parametrize(
    "change",
    [
        lambda row: credentials.store(row.pk, {"token": "newer"}),
        lambda row: credentials.drop_all(row.pk),
    ],
    ids=["replaced", "removed"],
)
def test_transaction_that_comes_to_nothing_loses_nothing(tenant: Any, ring: InMemory, change: Any) -> None:
    row = make_connection(tenant)
    keep(row, token=CANARY)
    with pytest.raises(ZeroDivisionError):
        _undone(row, change)
    assert opened(row) == {"token": CANARY}


def test_locked_keyring_is_told_by_its_code_and_nothing_is_lost(tenant: Any, ring: InMemory) -> None:
    row = make_connection(tenant)
    keep(row, token=CANARY)
    ring.locked = True
    with pytest.raises(SilasError):
        keep(row, token="newer")
    assert refused(row) == "keyring_unavailable"
    ring.locked = False
    assert opened(row) == {"token": CANARY}


def test_check_while_the_keyring_is_locked_breaks_no_connection(tenant: Any, ring: InMemory) -> None:
    row = linked(tenant)
    ring.locked = True
    check_due(tenant)
    after = reread(row)
    assert after.status == ConnectionStatus.ACTIVE
    assert after.next_check_at > now()


def test_secret_that_was_typed_while_the_keyring_is_locked_can_be_typed_again(
    tenant: Any, owner: Any, ring: InMemory
) -> None:
    pending = make_pending(tenant)
    ring.locked = True
    answer = send(owner, pending.pk, {"value": CANARY})
    assert told(answer) == (503, "keyring_unavailable")
    assert CANARY not in answer.content.decode()
    with tenant_scope(tenant):
        assert PendingSecret.objects.get().stored_at is None
    ring.locked = False
    assert send(owner, pending.pk, {"value": CANARY}).status_code == 200


def test_machine_without_a_keyring_is_told_by_its_code(tenant: Any, ring: InMemory) -> None:
    keyring.set_keyring(NoKeyring())
    with pytest.raises(SilasError) as no:
        keep(make_connection(tenant), token=CANARY)
    assert no.value.code == "keyring_unavailable"


def test_library_that_is_not_installed_is_told_by_its_code(
    tenant: Any, ring: InMemory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "keyring", None)
    with pytest.raises(SilasError) as no:
        keep(make_connection(tenant), token=CANARY)
    assert no.value.code == "keyring_missing"


def test_value_that_somebody_deleted_from_the_keyring_is_told_by_its_code(tenant: Any, ring: InMemory) -> None:
    row = make_connection(tenant)
    keep(row, token=CANARY)
    ring.kept.clear()
    assert refused(row) == "credential_gone"


def test_value_that_was_put_under_another_name_in_the_keyring_does_not_open(tenant: Any, ring: InMemory) -> None:
    row = make_connection(tenant)
    keep(row, token=CANARY, other="word")
    one, two = ring.kept
    ring.kept[one], ring.kept[two] = ring.kept[two], ring.kept[one]
    assert refused(row) == "seal_broken"


def test_what_is_elsewhere_is_still_read_after_another_choice(tenant: Any, ring: InMemory, settings: Any) -> None:
    row = make_connection(tenant)
    keep(row, token=CANARY)
    settings.CREDENTIAL_BACKEND = "database"
    before = opened(row)
    keep(row, token="newer")
    assert before == {"token": CANARY}
    assert opened(row) == {"token": "newer"}
    assert ring.kept == {}


class Shelf:
    """An outside vault for tests."""

    kept: ClassVar[dict[bytes, bytes]] = {}

    def keep(self, ref: str, sealed: bytes) -> bytes:
        self.kept[ref.encode()] = sealed
        return ref.encode()

    def fetch(self, kept: bytes) -> bytes:
        return self.kept[kept]

    def drop(self, kept: bytes) -> None:
        del self.kept[kept]


def test_outside_vault_is_given_sealed_values_only(tenant: Any, settings: Any) -> None:
    settings.CREDENTIAL_BACKEND = "tests.connections.test_backends.Shelf"
    row = make_connection(tenant)
    keep(row, a=CANARY)
    with tenant_scope(tenant):
        assert bytes(Credential.objects.get().sealed) in Shelf.kept
    assert opened(row) == {"a": CANARY}
    assert CANARY.encode() not in b"".join(Shelf.kept.values())
    with tenant_scope(tenant):
        credentials.drop_all(row.pk)
    assert Shelf.kept == {}


def test_vault_that_is_not_set_up_any_more_is_told_by_its_code(tenant: Any, settings: Any) -> None:
    settings.CREDENTIAL_BACKEND = "tests.connections.test_backends.Shelf"
    row = make_connection(tenant)
    keep(row, a=CANARY)
    settings.CREDENTIAL_BACKEND = "database"
    assert refused(row) == "vault_missing"
