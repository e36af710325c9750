"""No stray value stays in the keyring when a process dies, a transaction is rolled back or the keyring is locked."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import keyring
import pytest

from apps.connections import credentials, keyring_cleanup
from apps.connections.models import Connection, Credential
from kernel.clock import now
from kernel.tenancy import tenant_scope
from tests import nursery
from tests.connections.keyrings import OnDisk
from tests.factories.connections import keep, make_connection, opened

ROOT = Path(__file__).resolve().parents[2]
DIES = """
import sys, django; from pathlib import Path; from uuid import UUID; django.setup()
import keyring
from django.conf import settings
from apps.connections import credentials
from kernel.tenancy import tenant_scope
from tests.connections.keyrings import OnDisk
settings.CREDENTIAL_BACKEND, settings.VAR_DIR = "keyring", Path(sys.argv[1])
keyring.set_keyring(OnDisk(Path(sys.argv[2]), kills=True))
with tenant_scope(UUID(sys.argv[3])):
    credentials.store(UUID(sys.argv[4]), {"token": "newer"})
"""


@pytest.fixture
def ring(settings: Any, tmp_path: Path) -> Iterator[OnDisk]:
    settings.CREDENTIAL_BACKEND, settings.VAR_DIR = "keyring", tmp_path
    before, made = keyring.get_keyring(), OnDisk(tmp_path / "ring")
    keyring.set_keyring(made)
    yield made
    keyring.set_keyring(before)


@pytest.fixture
def row(tenant: Any, ring: OnDisk) -> Connection:
    made = make_connection(tenant)
    keep(made, token="first")
    return made


def _undone(row: Connection) -> None:
    with tenant_scope(row.tenant_id):
        credentials.store(row.pk, {"token": "newer"})
        raise ZeroDivisionError


def notes(settings: Any) -> list[Path]:
    return list((settings.VAR_DIR / "keyring").iterdir())


def a_day_passes(settings: Any) -> None:
    then = (now() - timedelta(days=1, seconds=1)).timestamp()
    for note in notes(settings):
        os.utime(note, (then, then))


def test_value_of_a_process_that_died_before_its_commit_is_taken_out_a_day_later(
    row: Connection, ring: OnDisk, settings: Any
) -> None:
    told = [settings.VAR_DIR, ring.folder, row.tenant_id, row.pk]
    died = nursery.run([sys.executable, "-c", DIES, *map(str, told)], cwd=ROOT, check=False)
    assert died.returncode == -signal.SIGKILL
    assert ring.held() == 2
    assert keyring_cleanup.remove_strays() == 0
    a_day_passes(settings)
    assert keyring_cleanup.remove_strays() == 2
    assert ring.held() == 1
    assert notes(settings) == []
    assert opened(row) == {"token": "first"}


def test_nothing_is_in_doubt_once_it_is_committed(row: Connection, ring: OnDisk, settings: Any) -> None:
    keep(row, token="newer", other="word")
    assert notes(settings) == []
    assert ring.held() == 2


def test_value_of_a_transaction_that_came_to_nothing_is_taken_out(row: Connection, ring: OnDisk, settings: Any) -> None:
    with pytest.raises(ZeroDivisionError):
        _undone(row)
    a_day_passes(settings)
    keyring_cleanup.remove_strays()
    assert ring.held() == 1
    assert opened(row) == {"token": "first"}


def test_value_that_a_locked_keyring_would_not_give_up_is_taken_out_when_it_opens(
    row: Connection, ring: OnDisk, settings: Any
) -> None:
    ring.locked = True
    with tenant_scope(row.tenant_id):
        credentials.drop_all(row.pk)
    a_day_passes(settings)
    while_locked = keyring_cleanup.remove_strays()
    ring.locked = False
    assert while_locked == 0
    assert ring.held() == 1
    assert keyring_cleanup.remove_strays() == 1
    assert ring.held() == 0
    assert notes(settings) == []


def test_value_is_kept_whose_commit_left_its_note(row: Connection, ring: OnDisk, settings: Any) -> None:
    """Killed after the commit."""
    with tenant_scope(row.tenant_id):
        keyring_cleanup._write_note(bytes(Credential.objects.get().sealed))
    a_day_passes(settings)
    assert keyring_cleanup.remove_strays() == 1
    assert notes(settings) == []
    assert opened(row) == {"token": "first"}


def test_file_that_is_no_note_is_left_alone(row: Connection, settings: Any) -> None:
    (settings.VAR_DIR / "keyring" / "x.y").touch()
    a_day_passes(settings)
    assert keyring_cleanup.remove_strays() == 0
    assert len(notes(settings)) == 1


def test_credentials_in_the_database_leave_no_notes(tenant: Any, settings: Any, tmp_path: Path) -> None:
    settings.VAR_DIR = tmp_path
    keep(make_connection(tenant), token="first")
    assert list(tmp_path.iterdir()) == []
