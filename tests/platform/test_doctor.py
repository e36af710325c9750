"""`manage.py doctor` names what is wrong, and one fault hides no other."""

from __future__ import annotations

import json
import shutil
from collections import namedtuple
from datetime import timedelta
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command

from apps.bus.enums import Kind
from apps.bus.services import schedule
from apps.bus.workers import Worker
from kernel.clock import now
from kernel.tenancy import tenant_scope
from silas_platform import doctor
from silas_platform.backup.manifest import LAST_BACKUP
from silas_platform.doctor import Level
from tests.ports import free_port

Usage = namedtuple("Usage", "total used free")


class Workers:
    """Stands for Celery's answers: one worker that serves these queues."""

    def __init__(self, *queues: str) -> None:
        self.queues = queues

    def __call__(self, timeout: float) -> Workers:
        return self

    def active_queues(self) -> dict[str, list[dict[str, str]]] | None:
        return {"worker@host": [{"name": name} for name in self.queues]} if self.queues else None


def found(subject: str) -> list[tuple[Level, str]]:
    return [(each.level, each.text) for each in doctor.examine() if each.subject == subject]


def texts(subject: str, level: Level) -> str:
    return " ".join(text for found_level, text in found(subject) if found_level == level)


@pytest.fixture(autouse=True)
def answered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor.app.control, "inspect", Workers(*Worker))


@pytest.fixture
def alone(tenant: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The only company of the installation: other tests leave broken ones behind."""
    monkeypatch.setattr(doctor, "all_tenants", lambda: [tenant])
    return tenant


def test_healthy_parts_are_said_to_be_well(alone: Any, settings: Any, tmp_path: Path) -> None:
    well = {each.subject for each in doctor.examine() if each.level == Level.OK}
    assert {"database", "clocks", "redis", "workers", "keys", "sandbox"} <= well


def test_one_fault_hides_no_other(alone: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SILAS_BROKER_URL", f"redis://127.0.0.1:{free_port()}/0")
    assert "could not be examined: ConnectionError" in texts("redis", Level.FAULT)
    assert found("database")[0][0] == Level.OK


def test_queue_without_a_worker_is_named(alone: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor.app.control, "inspect", Workers("work", "parse", "upkeep"))
    said = texts("workers", Level.FAULT)
    assert "queue trusted" in said
    assert "queue work" not in said
    monkeypatch.setattr(doctor.app.control, "inspect", Workers())
    assert all(f"queue {worker.value}" in texts("workers", Level.FAULT) for worker in Worker)


def test_message_that_waits_too_long_is_a_fault(alone: Any) -> None:
    with tenant_scope(alone):
        schedule(Kind.GOAL_CYCLE, scope_id="late", due_at=now() - timedelta(hours=400))
    assert "due since" in texts("queues", Level.FAULT)


def test_policy_that_was_only_written_is_a_fault(alone: Any, tamper: Any) -> None:
    tamper("DELETE FROM tenants_policyseal WHERE tenant_id = %s AND kind = 'gates'", [alone.pk])
    assert f"{alone.slug} gates" in texts("keys", Level.FAULT)


def test_signing_key_that_nobody_pinned_is_a_fault(alone: Any, settings: Any) -> None:
    settings.SILAS_ROOT_KEYS = ("0" * 64,)
    assert "manage.py root_key" in texts("keys", Level.FAULT)


def test_clocks_that_differ_are_a_fault(alone: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "now", lambda: now() + timedelta(seconds=30))
    assert "differs by 3" in texts("clocks", Level.FAULT)


def test_full_disk_is_warned_of(alone: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: Usage(100 << 30, 99 << 30, 1 << 30))
    assert "1 GB of 100 GB are free" in texts("disk", Level.WARNING)


def test_mail_server_that_does_not_answer_is_a_fault(alone: Any, settings: Any) -> None:
    settings.EMAIL_HOST = ""
    assert "SILAS_MAIL_HOST" in texts("mail", Level.WARNING)
    settings.EMAIL_HOST, settings.EMAIL_PORT = "127.0.0.1", free_port()
    assert "ConnectionRefusedError" in texts("mail", Level.FAULT)


@pytest.mark.parametrize(("age", "level"), [(timedelta(hours=1), Level.OK), (timedelta(days=3), Level.WARNING)])
def test_backup_is_dated(alone: Any, settings: Any, tmp_path: Path, age: timedelta, level: Level) -> None:
    settings.VAR_DIR = tmp_path
    assert "No backup was made" in texts("backups", Level.WARNING)
    (tmp_path / LAST_BACKUP).write_text(json.dumps({"created": (now() - age).isoformat(), "place": "/backups/monday"}))
    assert "/backups/monday" in texts("backups", level)


@pytest.mark.parametrize("harm", ["", "{}", "[]", '{"created": "monday"}'])
def test_damaged_note_of_a_backup_is_no_backup(alone: Any, settings: Any, tmp_path: Path, harm: str) -> None:
    settings.VAR_DIR = tmp_path
    (tmp_path / LAST_BACKUP).write_text(harm)
    assert "No backup was made" in texts("backups", Level.WARNING)


def test_missing_migration_is_a_fault(alone: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "Migrations are missing" not in texts("database", Level.FAULT)
    monkeypatch.setattr(doctor.MigrationExecutor, "migration_plan", lambda *_: [("tenants", False)])
    assert "Migrations are missing (1)" in texts("database", Level.FAULT)


def test_database_that_another_version_migrated_is_named(alone: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "migrated by this version, 0.1.0" in texts("database", Level.OK)
    monkeypatch.setattr(doctor, "migrated_by", lambda: "0.2.0")
    assert "migrated by 0.2.0 and this is 0.1.0" in texts("database", Level.WARNING)


def test_command_exits_with_1_for_a_fault_and_writes_json(alone: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor.app.control, "inspect", Workers())
    said = StringIO()
    with pytest.raises(SystemExit) as ended:
        call_command("doctor", "--json", stdout=said)
    assert ended.value.code == 1
    rows = [json.loads(line) for line in said.getvalue().splitlines()]
    assert {"level": "fault", "subject": "workers"}.items() <= next(
        row.items() for row in rows if row["subject"] == "workers"
    )


def test_command_succeeds_without_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "EXAMINATIONS", {"disk": lambda: iter([(Level.WARNING, "Little is left.")])})
    said = StringIO()
    call_command("doctor", stdout=said)
    assert said.getvalue() == "warning  disk           Little is left.\n"
