"""Is any changed byte found, at its first place, by the command, by the bundle check and by a stranger alike?"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from django.core.management.base import CommandError
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from apps.audit.checkpoints import write_checkpoints
from apps.audit.queries import PLATFORM_NAME
from kernel.tenancy import platform_scope
from tests.factories.audit import VERIFIER, export, make_entries, stranger_verdict, tampering, verdict
from tests.factories.tenants import make_tenant

LENGTH = 6
TEXT = ["event", "actor", "subject", "data", "prev_hash", "entry_hash"]
OTHER = {
    "entry_id": "gen_random_uuid()",
    "chain": "gen_random_uuid()",
    "tenant_id": "NULL",
    "seq": "seq + 1000",
    "timestamp": "timestamp + interval '1 microsecond'",
}


@pytest.fixture(scope="module")
def chain(migrated: None, django_db_blocker: Any) -> Any:
    """One chain that every example changes and puts back."""
    with django_db_blocker.unblock():
        tenant = make_tenant()
        make_entries(tenant, LENGTH - 2)
        write_checkpoints()
        make_entries(tenant, 2)
        yield tenant


def _original(cursor: Any, chain: Any, seq: int) -> tuple[Any, ...]:
    cursor.execute("SELECT * FROM audit_auditentry WHERE chain = %s AND seq = %s", [chain.pk, seq])
    row: tuple[Any, ...] = cursor.fetchone()
    return row


def _put_back(cursor: Any, row: tuple[Any, ...], marker: Any) -> None:
    cursor.execute("DELETE FROM audit_auditentry WHERE entry_id IN (%s, %s)", [row[0], marker])
    cursor.execute(f"INSERT INTO audit_auditentry VALUES ({', '.join(['%s'] * len(row))})", row)


def _with_change(chain: Any, dsn: str, seq: int, change: str, values: list[Any], ask: Callable[[], str]) -> str:
    """`ask()` while entry `seq` has `change`; everything is as before afterwards."""
    with tampering(dsn) as cursor:
        row = _original(cursor, chain, seq)
        cursor.execute(
            f"UPDATE audit_auditentry SET {change} WHERE chain = %s AND seq = %s RETURNING entry_id",
            [*values, chain.pk, seq],
        )
        marker = cursor.fetchone()[0]
        try:
            return ask()
        finally:
            _put_back(cursor, row, marker)


def _changed_text(old: str, place: int, letter: str) -> str:
    """`old` with one byte changed, or one added when it is empty."""
    at = place % (len(old) or 1)
    return old[:at] + (letter if old[at : at + 1] != letter else "~") + old[at + 1 :]


@settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    seq=st.integers(1, LENGTH),
    column=st.sampled_from(TEXT),
    place=st.integers(0, 200),
    letter=st.sampled_from('0 aZ_é"\\\n'),
)
def test_changed_byte_of_text_column_names_the_first_bad_entry(
    database: None, chain: Any, superuser_dsn: str, seq: int, column: str, place: int, letter: str
) -> None:
    with tampering(superuser_dsn) as cursor:
        cursor.execute(f"SELECT {column} FROM audit_auditentry WHERE chain = %s AND seq = %s", [chain.pk, seq])
        value = _changed_text(cursor.fetchone()[0], place, letter)
    said = _with_change(
        chain, superuser_dsn, seq, f"{column} = %s", [value[:64]], lambda: verdict("--tenant", chain.slug)
    )
    assert said.startswith(f"broken tenant={chain.slug} seq={seq} reason=")


@pytest.mark.parametrize("seq", [1, 3, LENGTH])
@pytest.mark.parametrize("column", OTHER)
def test_changed_value_of_other_column_names_the_first_bad_entry(
    database: None, chain: Any, superuser_dsn: str, seq: int, column: str
) -> None:
    said = _with_change(
        chain, superuser_dsn, seq, f"{column} = {OTHER[column]}", [], lambda: verdict("--tenant", chain.slug)
    )
    assert said.startswith(f"broken tenant={chain.slug} seq={seq} reason=")


@pytest.mark.parametrize("moment", ["infinity", "-infinity", "2026-11-21 12:00:00 BC"])
def test_moment_that_python_cannot_hold_is_a_break(database: None, chain: Any, superuser_dsn: str, moment: str) -> None:
    said = _with_change(
        chain, superuser_dsn, 2, "timestamp = %s::timestamptz", [moment], lambda: verdict("--tenant", chain.slug)
    )
    assert said == f"broken tenant={chain.slug} seq=2 reason=content exit=1"


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seq=st.integers(1, LENGTH), column=st.sampled_from([*TEXT, *OTHER]))
def test_three_verifiers_say_the_same_of_a_damaged_chain(
    database: None, chain: Any, superuser_dsn: str, tmp_path: Path, seq: int, column: str
) -> None:
    def ask() -> str:
        bundle = str(export(chain, tmp_path / "bundle"))
        assert verdict("--bundle", bundle) == stranger_verdict(bundle)
        assert verdict("--tenant", chain.slug) == stranger_verdict(bundle)
        return stranger_verdict(bundle)

    said = _with_change(chain, superuser_dsn, seq, f"{column} = {OTHER.get(column, repr('x'))}", [], ask)
    assert said.startswith(f"broken tenant={chain.slug} seq={seq} ")


@pytest.fixture
def bundle(database: None, chain: Any, tmp_path: Path) -> bytes:
    return export(chain, tmp_path / "sound").read_bytes()


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(place=st.integers(0, 10**6), byte=st.integers(0, 255))
def test_changed_byte_of_bundle_is_found_by_both(bundle: bytes, tmp_path: Path, place: int, byte: int) -> None:
    path = tmp_path / "bundle"
    original = bytearray(bundle)
    start = original.index(b"\n", original.index(b"\n") + 1) + 1  # behind the header and its labels
    at = start + place % (len(original) - start)
    changed = bytes(original[:at] + bytes([byte if original[at] != byte else byte ^ 1]) + original[at + 1 :])
    path.write_bytes(changed)
    said = stranger_verdict(str(path))
    assert said.startswith("broken ")
    assert verdict("--bundle", str(path)) == said


@pytest.mark.parametrize(
    "text",
    ["", "{}\n", "not json\n", "[]\n", '{"format":"silas-audit"}\n', "\x00\n", "[" * 100_000 + "\n"],
    ids=["empty", "no_header", "not_json", "list", "half_header", "nul", "deep"],
)
def test_unreadable_bundle_is_broken_for_both(database: None, tmp_path: Path, text: str) -> None:
    path = tmp_path / "bundle"
    path.write_text(text)
    assert (
        verdict("--bundle", str(path))
        == stranger_verdict(str(path))
        == ("broken tenant=unknown seq=0 reason=format exit=1")
    )


def test_sound_bundle_is_ok_for_stranger_without_our_code(database: None, chain: Any, tmp_path: Path) -> None:
    export(chain, tmp_path / "bundle")
    alone = subprocess.run(
        [sys.executable, "-I", str(VERIFIER), "bundle"], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert alone.stdout.strip() == verdict("--tenant", chain.slug)


def test_verifier_imports_nothing_of_ours() -> None:
    imported = [line for line in VERIFIER.read_text().splitlines() if line.startswith(("import ", "from "))]
    assert not [
        line
        for line in imported
        if line.split()[1].split(".")[0] in {"apps", "kernel", "llm", "sandbox", "silas_platform"}
    ]


def test_truncated_bundle_names_the_first_lost_entry(database: None, chain: Any, tmp_path: Path) -> None:
    path = export(chain, tmp_path / "bundle")
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:-2]))
    assert stranger_verdict(str(path)) == f"broken tenant={chain.slug} seq={LENGTH - 1} reason=tail exit=1"


def test_platform_chain_is_verified_too(database: None) -> None:
    with platform_scope("test"):
        pass
    assert verdict("--tenant", PLATFORM_NAME).startswith("ok tenant=@platform entries=")


@pytest.mark.slow
def test_100_000_entries_are_verified_in_seconds(tenant: Any) -> None:
    for _ in range(20):
        make_entries(tenant, 5_000)
    start = time.monotonic()
    assert verdict("--tenant", tenant.slug).startswith(f"ok tenant={tenant.slug} entries=100000 ")
    assert time.monotonic() - start < 20


def test_verify_unknown_tenant_is_refused(database: None) -> None:
    with pytest.raises(CommandError, match="no tenant"):
        verdict("--tenant", f"x-{uuid4().hex}")
