"""Chains for tests, the verdicts on them, and a hostile administrator of the database."""

from __future__ import annotations

import importlib.util
import io
import json
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from typing import Any

import psycopg
from django.core.management import call_command

from apps.audit.enums import AuditEvent
from apps.audit.models import AuditEntry
from apps.audit.services import record
from kernel.tenancy import tenant_scope

VERIFIER = Path(__file__).parents[2] / "tools" / "verify_audit.py"


def make_entries(tenant: Any, count: int) -> None:
    with tenant_scope(tenant):
        for number in range(count):
            record(AuditEvent.MESSAGE_ACCEPTED, actor="visitor:1", subject=f"session:{number}", data={"seq": number})


def changes(tenant: Any) -> list[dict[str, Any]]:
    """What each change in settings or the administration was recorded with, the oldest first."""
    with tenant_scope(tenant):
        return [json.loads(entry.data) for entry in AuditEntry.objects.filter(event="admin_changed").order_by("seq")]


def verdict(*arguments: str) -> str:
    """What `audit_verify` prints, with its exit code when that is not 0."""
    out = io.StringIO()
    try:
        call_command("audit_verify", *arguments, stdout=out)
    except SystemExit as left:
        return f"{out.getvalue().strip()} exit={left.code}"
    return out.getvalue().strip()


def stranger_verdict(*arguments: str) -> str:
    """What the stand-alone verifier says, in the same words."""
    spec = importlib.util.spec_from_file_location("verify_audit", VERIFIER)
    assert spec
    assert spec.loader
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    out = io.StringIO()
    with redirect_stdout(out):
        code = tool.main(list(arguments))
    return out.getvalue().strip() + (f" exit={code}" if code else "")


def export(tenant: Any, path: Path) -> Path:
    call_command("audit_export", str(path), "--tenant", tenant.slug, stdout=io.StringIO())
    return path


@contextmanager
def tampering(dsn: str) -> Iterator[psycopg.Cursor[Any]]:
    """A cursor of the superuser with every trigger and constraint trigger asleep."""
    with psycopg.connect(dsn, autocommit=True) as connection, connection.cursor() as cursor:
        cursor.execute("SET session_replication_role = replica")
        yield cursor
