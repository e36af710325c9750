"""A superuser without the signing key cuts or rewrites the log and drops the checkpoints behind it: it is found."""

from __future__ import annotations

import io
import os
import re
import sys
from collections.abc import Iterator
from contextlib import redirect_stderr
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import psycopg
import pytest
import time_machine
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from django.core.management import call_command

from apps.approvals.schemas import to_base64
from apps.audit import checkpoint_file, queries
from apps.audit.checkpoints import write_checkpoint
from apps.audit.queries import Chain
from apps.audit.rules import Checkpoint, compute_hash, key_id_of, signed_statement
from kernel import trust
from kernel.canonical import canonical_json
from kernel.clock import now
from kernel.tenancy import tenant_scope
from silas_platform.up.environment import ROOT
from tests import nursery
from tests.factories.audit import export, make_entries, stranger_verdict, tampering, verdict


@pytest.fixture
def log(tenant: Any, superuser_dsn: str) -> Iterator[Any]:
    """A tenant's log of six entries with a checkpoint at its end; as it was again afterwards."""
    make_entries(tenant, 6)
    assert checkpoint(tenant)
    tables = ("audit_auditentry", "audit_audithead", "audit_auditcheckpoint")
    with tampering(superuser_dsn) as cursor:
        for table in tables:
            cursor.execute(f"CREATE TEMP TABLE kept_{table} AS SELECT * FROM {table} WHERE chain = %s", [tenant.pk])
        yield tenant
        for table in tables:
            cursor.execute(f"DELETE FROM {table} WHERE chain = %s", [tenant.pk])
            cursor.execute(f"INSERT INTO {table} SELECT * FROM kept_{table}")


def checkpoint(tenant: Any) -> bool:
    return write_checkpoint(Chain(tenant.slug, tenant.pk))


def notes(*arguments: str) -> list[str]:
    said = io.StringIO()
    call_command("audit_verify", *arguments, stdout=io.StringIO(), stderr=said)
    return [line.split(" ", 2)[2] for line in said.getvalue().splitlines()]


def cut(dsn: str, tenant: Any, left: int) -> None:
    """The last entries and every checkpoint are gone, and the head says so too."""
    with tampering(dsn) as cursor:
        cursor.execute("DELETE FROM audit_auditcheckpoint WHERE chain = %s", [tenant.pk])
        cursor.execute("DELETE FROM audit_auditentry WHERE chain = %s AND seq > %s", [tenant.pk, left])
        cursor.execute(
            "UPDATE audit_audithead SET seq = %s, entry_hash = coalesce((SELECT entry_hash FROM audit_auditentry"
            " WHERE chain = %s AND seq = %s), 'genesis') WHERE chain = %s",
            [left, tenant.pk, left, tenant.pk],
        )


def rewrite(dsn: str, tenant: Any) -> None:
    """Every entry is by somebody else now, hashed again to the end; the checkpoints are gone."""
    with tenant_scope(tenant):
        entries, last = list(queries.entries_of(tenant.pk)), "genesis"
    with tampering(dsn) as cursor:
        cursor.execute("DELETE FROM audit_auditcheckpoint WHERE chain = %s", [tenant.pk])
        for entry in entries:
            changed = replace(entry, actor="visitor:2", prev_hash=last)
            last = compute_hash(changed)
            cursor.execute(
                "UPDATE audit_auditentry SET actor = 'visitor:2', prev_hash = %s, entry_hash = %s"
                " WHERE chain = %s AND seq = %s",
                [changed.prev_hash, last, tenant.pk, entry.seq],
            )
        cursor.execute("UPDATE audit_audithead SET entry_hash = %s WHERE chain = %s", [last, tenant.pk])


def forge_checkpoint(dsn: str, tenant: Any) -> None:
    """A checkpoint of the log as it is now, by a key of the attacker's that is listed as the platform's."""
    private = Ed25519PrivateKey.generate()
    public = private.public_key().public_bytes_raw()
    with tenant_scope(tenant):
        head = queries.head_of(tenant.pk)
    made = "2026-11-01T12:00:00+00:00"
    unsigned = Checkpoint(str(tenant.pk), head.seq, head.entry_hash, head.seq, made, key_id_of(public), "")
    with tampering(dsn) as cursor:
        cursor.execute(
            "INSERT INTO audit_auditkey (key_id, public_key, sealed_private, created_at) VALUES (%s, %s, '', now())",
            [unsigned.key_id, public.hex()],
        )
        cursor.execute(
            "INSERT INTO audit_auditcheckpoint (id, tenant_id, chain, seq, entry_hash, key_id, signature, created_at)"
            " VALUES (%s, %s, %s, %s, %s, %s, %s, %s)",
            [
                uuid4(),
                tenant.pk,
                tenant.pk,
                head.seq,
                head.entry_hash,
                unsigned.key_id,
                to_base64(private.sign(signed_statement(unsigned))),
                made,
            ],
        )


def test_whole_log_with_a_fresh_checkpoint_leaves_nothing_unproven(log: Any) -> None:
    assert verdict("--tenant", log.slug).startswith("ok ")
    assert notes("--tenant", log.slug) == []


@pytest.mark.parametrize("left", [0, 3])
def test_cut_log_is_found_by_the_copy_outside(log: Any, superuser_dsn: str, left: int) -> None:
    cut(superuser_dsn, log, left)
    assert verdict("--tenant", log.slug) == f"broken tenant={log.slug} seq={left + 1} reason=tail exit=1"


def test_rewritten_log_is_found_by_the_copy_outside(log: Any, superuser_dsn: str) -> None:
    rewrite(superuser_dsn, log)
    assert verdict("--tenant", log.slug) == f"broken tenant={log.slug} seq=6 reason=checkpoint exit=1"


@pytest.mark.parametrize("attack", ["cut", "rewrite"])
def test_log_that_was_cut_or_rewritten_gets_no_fresh_checkpoint(log: Any, superuser_dsn: str, attack: str) -> None:
    cut(superuser_dsn, log, 3) if attack == "cut" else rewrite(superuser_dsn, log)
    assert not checkpoint(log)
    make_entries(log, 9)
    assert not checkpoint(log)


def test_forged_checkpoint_proves_nothing_without_the_copy(log: Any, superuser_dsn: str, tmp_path: Path) -> None:
    rewrite(superuser_dsn, log)
    forge_checkpoint(superuser_dsn, log)
    empty = str(tmp_path / "none")
    assert notes("--tenant", log.slug, "--checkpoints", empty) == ["no_outside_copy", "no_checkpoint"]


def test_forged_checkpoint_is_no_start_for_a_fresh_one(log: Any, superuser_dsn: str) -> None:
    rewrite(superuser_dsn, log)
    forge_checkpoint(superuser_dsn, log)
    make_entries(log, 1)
    assert not checkpoint(log)


def test_entries_behind_the_newest_checkpoint_are_named(log: Any) -> None:
    make_entries(log, 2)
    assert notes("--tenant", log.slug) == ["newest_entries=7-8"]


def test_log_that_was_cut_back_to_an_old_checkpoint_is_not_called_proven(log: Any, superuser_dsn: str) -> None:
    """Entries that no checkpoint followed, because somebody kept web from signing, are cut off again."""
    make_entries(log, 2)
    cut(superuser_dsn, log, 6)
    signed = checkpoint_file.read_newest()[str(log.pk)].created_at
    assert verdict("--tenant", log.slug).startswith(f"ok tenant={log.slug} entries=6 ")
    with time_machine.travel(now() + timedelta(hours=2)):
        assert notes("--tenant", log.slug) == [f"old_checkpoint={signed}"]


def test_stranger_names_an_old_checkpoint_too(log: Any, tmp_path: Path, settings: Any) -> None:
    settings.SILAS_SIGNING_KEY = ""
    bundle = str(export(log, tmp_path / "bundle"))
    more = ["--key", settings.SILAS_ROOT_KEYS[0], "--checkpoints", _kept()]
    said = io.StringIO()
    with redirect_stderr(said), time_machine.travel(now() + timedelta(hours=2)):
        stranger_verdict(bundle, *more)
        assert notes("--bundle", bundle, *more) == [said.getvalue().strip().split(" ", 2)[2]]
    assert "old_checkpoint=" in said.getvalue()


def test_log_that_is_gone_altogether_is_found(log: Any, tmp_path: Path, settings: Any) -> None:
    """A chain that only the copy knows; another tenant's lines stand for one whose rows are gone."""
    gone = str(uuid4())
    unsigned = Checkpoint(
        gone, 4, "0" * 64, 4, "2026-11-01T12:00:00+00:00", next(iter(checkpoint_file.pinned_keys())), ""
    )
    key = trust.installation_key(settings.SILAS_SIGNING_KEY)
    signed = replace(unsigned, signature=to_base64(key.sign(signed_statement(unsigned))))
    copy = tmp_path / "checkpoints"
    copy.write_text(canonical_json(vars(signed)) + "\n")
    assert f"broken tenant={gone} seq=1 reason=tail" in verdict("--checkpoints", str(copy))


def test_line_outside_that_no_pinned_key_signed_is_left_out(log: Any, tmp_path: Path) -> None:
    copy = tmp_path / "checkpoints"
    copy.write_text(Path(_kept()).read_text().replace('"seq":6', '"seq":600') + "junk\n[]\n")
    assert str(log.pk) not in checkpoint_file.read_newest(copy)


@pytest.mark.parametrize("pinned", [True, False])
def test_stranger_says_the_same_of_a_bundle(log: Any, tmp_path: Path, settings: Any, pinned: bool) -> None:
    make_entries(log, 1)
    settings.SILAS_SIGNING_KEY = ""
    bundle = str(export(log, tmp_path / "bundle"))
    more = ["--key", settings.SILAS_ROOT_KEYS[0], "--checkpoints", _kept()] if pinned else []
    said = io.StringIO()
    with redirect_stderr(said):
        assert stranger_verdict(bundle, *more) == verdict("--bundle", bundle, *more)
    told = [line.split(" ", 2)[2] for line in said.getvalue().splitlines() if line.startswith("unproven ")]
    assert notes("--bundle", bundle, *more) == (["newest_entries=7-7"] if pinned else ["no_pinned_key"])
    assert told[0] == (["newest_entries=7-7"] if pinned else ["no_pinned_key"])[0]


def test_stranger_finds_a_cut_log_by_the_copy(log: Any, superuser_dsn: str, tmp_path: Path, settings: Any) -> None:
    cut(superuser_dsn, log, 3)
    settings.SILAS_SIGNING_KEY = ""
    bundle = str(export(log, tmp_path / "bundle"))
    more = ["--key", settings.SILAS_ROOT_KEYS[0], "--checkpoints", _kept()]
    assert stranger_verdict(bundle, *more) == f"broken tenant={log.slug} seq=4 reason=tail exit=1"
    assert verdict("--bundle", bundle, *more) == f"broken tenant={log.slug} seq=4 reason=tail exit=1"


def test_without_a_database_one_sentence_is_said() -> None:
    nowhere = {"DATABASE_URL": "postgresql://silas_app@127.0.0.1:1/none", "PYTHONWARNINGS": "ignore"}
    argv = [sys.executable, "manage.py", "audit_verify"]
    done = nursery.run(argv, cwd=ROOT, env={**os.environ, **nowhere}, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.splitlines() == ["CommandError: The database cannot be reached, so no chain was checked."]
    assert done.stdout == ""


def test_database_without_tables_is_one_sentence_too(superuser_dsn: str) -> None:
    with psycopg.connect(superuser_dsn, autocommit=True) as connection:
        connection.execute("CREATE DATABASE without_tables")
    empty = {"DATABASE_URL": re.sub(r"@/[^?]+", "@/without_tables", superuser_dsn), "PYTHONWARNINGS": "ignore"}
    argv = [sys.executable, "manage.py", "audit_verify"]
    done = nursery.run(argv, cwd=ROOT, env={**os.environ, **empty}, capture_output=True, text=True, check=False)
    with psycopg.connect(superuser_dsn, autocommit=True) as connection:
        connection.execute("DROP DATABASE without_tables")
    said = "CommandError: The database lacks the tables of this release, so no chain was checked: run migrate."
    assert done.returncode == 2
    assert done.stderr.splitlines() == [said]


def _kept() -> str:
    from django.conf import settings

    return str(settings.CHECKPOINTS_FILE)
