"""Tables kept by month: rows find their partition, walls and triggers hold on each, old months are detached whole."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from datetime import date, timedelta
from io import StringIO
from itertools import pairwise
from typing import Any
from uuid import UUID, uuid4

import psycopg
import pytest
from django.core.management import CommandError, call_command
from django.db import connection, connections

from apps.audit.models import AuditEntry
from apps.guard.models import SpendEntry, ToolCall
from kernel.clock import now
from kernel.tenancy import migrations, platform_scope, tenant_scope
from kernel.tenancy.migrations import AppendOnly, PartitionByMonth, RowSecurity
from kernel.tenancy.partitions import MONTHS_AHEAD
from silas_platform import __version__, doctor, partitions
from silas_platform.apps import _set_rights
from silas_platform.doctor import Level
from silas_platform.installed_version import migrated_by
from silas_platform.management.commands import partitions as partitions_command
from silas_platform.partitions import Partition
from tests.factories.guard import make_run
from tests.guard.conftest import spend

LEDGER = "guard_spendentry"
TRIAL = "trial"
Owner = psycopg.Connection[tuple[Any, ...]]


def month(ahead: int) -> date:
    """The first day of this month, or of one of the next."""
    first = now().date().replace(day=1)
    for _ in range(ahead):
        first = (first + timedelta(days=31)).replace(day=1)
    return first


def of(table: str) -> list[Partition]:
    return [each for each in partitions.list_partitions() if each.table == table]


def owner_line(**options: Any) -> Owner:
    return psycopg.connect(os.environ["DATABASE_OWNER_URL"], **options)


@pytest.fixture
def trial(tenant: Any) -> Iterator[Any]:
    """A filled table as it was before partitions: walled, append-only, granted, with a reference and two indexes. The
    other tables of the database keep their partitions."""
    with owner_line(autocommit=True) as line:
        line.execute(
            f"CREATE TABLE {TRIAL} (id uuid PRIMARY KEY DEFAULT gen_random_uuid(), day date NOT NULL,"
            " tenant_id uuid NOT NULL REFERENCES tenants_tenant DEFERRABLE INITIALLY DEFERRED,"
            " amount int NOT NULL CHECK (amount >= 0))"
        )
        try:
            line.execute(f"CREATE INDEX {TRIAL}_by_day ON {TRIAL} (tenant_id, day)")
            line.execute(f"CREATE INDEX {TRIAL}_costly ON {TRIAL} (amount) WHERE amount > 3")
            line.execute(f"GRANT INSERT ON {TRIAL} TO silas_work")
            line.execute(str(RowSecurity(TRIAL).sql))
            line.execute(str(AppendOnly(TRIAL, "it stays as it is", TRIAL).sql))
            put(line, tenant, *(date(2026, 1, 1) + timedelta(days=7 * week) for week in range(40)))
            yield tenant
        finally:
            for (name,) in line.execute(
                "SELECT relname FROM pg_class WHERE relname ~ '^trial(_[a-z0-9_]+)?$' AND relkind IN ('r', 'p')"
            ).fetchall():
                line.execute(f"DROP TABLE IF EXISTS {name} CASCADE")
            line.execute(f"DROP FUNCTION IF EXISTS {TRIAL}_refuse()")


def put(line: Any, tenant: Any, *days: date) -> None:
    with line.transaction():
        line.execute("SELECT set_config('silas.tenant', %s, true)", [str(tenant.pk)])
        for day in days:
            line.execute(f"INSERT INTO {TRIAL} (day, tenant_id, amount) VALUES (%s, %s, 5)", [day, tenant.pk])


def run(line: Owner, tenant_id: UUID, statement: str) -> None:
    with line.transaction():
        line.execute("SELECT set_config('silas.tenant', %s, true)", [str(tenant_id)])
        line.execute(statement)


def rows_of(line: Owner, tenant: Any, table: str = TRIAL) -> int:
    with line.transaction():
        line.execute("SELECT set_config('silas.tenant', %s, true)", [str(tenant.pk)])
        return int((line.execute(f"SELECT count(*) FROM {table}").fetchone() or (0,))[0])


def partition_trial() -> None:
    with connections["owner"].schema_editor(atomic=False) as editor:
        PartitionByMonth(TRIAL, "day").database_forwards("guard", editor, None, None)  # type: ignore[arg-type]


@pytest.fixture
def divided(trial: Any) -> Any:
    partition_trial()
    partitions.make()
    return trial


@pytest.fixture
def line() -> Iterator[Owner]:
    with owner_line(autocommit=True) as opened:
        yield opened


# -- the ledger ----------------------------------------------------------------------------------------------------


def entries(tenant: Any) -> dict[date, str]:
    with tenant_scope(tenant), connection.cursor() as cursor:
        cursor.execute(f"SELECT day, tableoid::regclass::text FROM {LEDGER} WHERE tenant_id = %s", [tenant.pk])
        return dict(cursor.fetchall())


def enter(tenant: Any, *days: date) -> None:
    spend(make_run(tenant), "0.01")
    with tenant_scope(tenant):
        call = ToolCall.objects.get()
        for day in days:
            SpendEntry.objects.create(call=call, kind="settle", intent=call.intent, day=day, amount=1)


def test_ledger_has_a_partition_for_every_coming_month_and_one_for_the_rest(database: None) -> None:
    found = of(LEDGER)
    assert found[-1].until is None
    ends = [each.until for each in found[:-1] if each.until]
    assert ends[-1] >= month(MONTHS_AHEAD)
    assert all(before < after for before, after in pairwise(ends))


def test_entry_lies_in_the_partition_of_its_month(tenant: Any) -> None:
    ends = {each.until: each.name for each in of(LEDGER) if each.until}
    last = max(ends)
    enter(tenant, date(2020, 2, 29), last - timedelta(days=1))
    found = entries(tenant)
    assert found[date(2020, 2, 29)] == f"{LEDGER}_first"
    assert found[last - timedelta(days=1)] == ends[last] != f"{LEDGER}_first"
    assert len(found) == 3


def test_question_about_days_reads_their_months_only(tenant: Any) -> None:
    since = max(each.until for each in of(LEDGER) if each.until) - timedelta(days=20)
    with tenant_scope(tenant):
        plan = SpendEntry.objects.filter(day__gte=since).explain()
        whole = SpendEntry.objects.all().explain()
    assert f"{LEDGER}_first" in whole
    assert f"{LEDGER}_first" not in plan
    assert f"{LEDGER}_{since:%Y_%m}" in plan


@pytest.mark.parametrize("url", ["DATABASE_URL", "DATABASE_WORK_URL"])
def test_roles_reach_partitions_through_their_table_only(database: None, url: str) -> None:
    with psycopg.connect(os.environ[url]) as role:
        assert role.execute(f"SELECT has_table_privilege('{LEDGER}', 'INSERT')").fetchone() == (True,)
        for each in of(LEDGER):
            for right in ("SELECT", "INSERT", "UPDATE", "DELETE", "TRUNCATE"):
                query = "SELECT has_table_privilege(%s, %s)"
                assert role.execute(query, [each.name, right]).fetchone() == (False,), each.name


def test_row_security_binds_whoever_reads_a_partition(tenant: Any, other_tenant: Any, line: Owner) -> None:
    enter(tenant)
    for each in of(LEDGER):
        with line.transaction():
            line.execute("SELECT set_config('silas.tenant', %s, true)", [str(other_tenant.pk)])
            assert line.execute(f"SELECT count(*) FROM {each.name}").fetchone() == (0,)
    assert rows_of(line, tenant, f"{LEDGER}_first") >= 1


@pytest.mark.parametrize("statement", ["UPDATE {} SET amount = 0", "DELETE FROM {}", "TRUNCATE {}"])
def test_ledger_cannot_be_rewritten_by_its_partitions(tenant: Any, line: Owner, statement: str) -> None:
    last = max(each.until for each in of(LEDGER) if each.until)
    enter(tenant, last - timedelta(days=1))
    for name in (f"{LEDGER}_first", f"{LEDGER}_{last - timedelta(days=1):%Y_%m}"):
        with pytest.raises(psycopg.errors.InsufficientPrivilege, match="cannot be rewritten"):
            run(line, tenant.pk, statement.format(name))


# -- the migration -------------------------------------------------------------------------------------------------


def test_every_row_stays_and_nothing_is_lost_of_the_table(trial: Any, other_tenant: Any, line: Owner) -> None:
    put(line, other_tenant, now().date())
    partition_trial()
    assert rows_of(line, trial) == 40
    assert rows_of(line, other_tenant) == 1
    assert rows_of(line, trial, f"{TRIAL}_first") == 40
    nobody = uuid4()
    with pytest.raises(psycopg.errors.ForeignKeyViolation):
        run(line, nobody, f"INSERT INTO {TRIAL} (day, tenant_id, amount) VALUES (now(), '{nobody}', 1)")
    with pytest.raises(psycopg.errors.CheckViolation):
        run(line, trial.pk, f"INSERT INTO {TRIAL} (day, tenant_id, amount) VALUES (now(), '{trial.pk}', -1)")
    kept = "SELECT indexdef FROM pg_indexes WHERE tablename = 'trial'"
    assert any("WHERE (amount > 3)" in text for (text,) in line.execute(kept))
    granted = "SELECT has_table_privilege(%s, 'trial', %s)"
    assert line.execute(granted, ["silas_work", "INSERT"]).fetchone() == (True,)
    assert line.execute(granted, ["silas_app", "SELECT"]).fetchone() == (True,)


def test_rows_are_not_read_while_the_table_is_locked(trial: Any) -> None:
    said: list[str] = []
    connections["owner"].ensure_connection()
    raw = connections["owner"].connection
    raw.add_notice_handler(lambda notice: said.append(notice.message_primary))
    raw.execute("SET client_min_messages = debug1")
    partition_trial()
    assert f'partition constraint for table "{TRIAL}_first" is implied by existing constraints' in said
    assert not [text for text in said if text.startswith("validating foreign key") and f"{TRIAL}_first" in text]


def test_interrupted_migration_is_repeated_and_a_finished_one_does_nothing(trial: Any, line: Owner) -> None:
    line.execute(f"ALTER TABLE {TRIAL} ADD CONSTRAINT {TRIAL}_first CHECK (day < '2030-01-01') NOT VALID")
    line.execute(f"CREATE UNIQUE INDEX {TRIAL}_first_pkey ON {TRIAL} (id, day)")
    partition_trial()
    before = of(TRIAL)
    partition_trial()
    assert of(TRIAL) == before
    assert [each.until for each in before] == [month(2)]
    assert rows_of(line, trial) == 40


def test_exchange_waits_a_second_for_its_lock_and_tries_again(
    trial: Any, line: Owner, monkeypatch: pytest.MonkeyPatch
) -> None:
    with owner_line() as reader:
        reader.execute(f"SELECT FROM {TRIAL}")
        tries: list[float] = []

        def release(seconds: float) -> None:
            tries.append(seconds)
            reader.rollback()

        # The index is built concurrently, which waits for older readers: this one comes after it.
        monkeypatch.setattr(migrations.time, "sleep", release)
        original = PartitionByMonth._exchange

        def exchange(self: PartitionByMonth, *arguments: Any) -> None:
            if not tries:
                reader.execute(f"SELECT FROM {TRIAL}")
            original(self, *arguments)

        monkeypatch.setattr(PartitionByMonth, "_exchange", exchange)
        reader.rollback()
        partition_trial()
    assert tries == [1]
    assert rows_of(line, trial) == 40


def test_check_waits_a_second_for_its_lock_and_tries_again(
    trial: Any, line: Owner, monkeypatch: pytest.MonkeyPatch
) -> None:
    with owner_line() as reader:
        reader.execute(f"SELECT FROM {TRIAL}")
        tries: list[float] = []

        def release(seconds: float) -> None:
            tries.append(seconds)
            reader.rollback()

        monkeypatch.setattr(migrations.time, "sleep", release)
        # Without a try that ends, the reader would be waited for without end.
        connections["owner"].ensure_connection()
        connections["owner"].connection.execute("SET statement_timeout = '10s'")
        partition_trial()
        connections["owner"].connection.execute("RESET statement_timeout")
    assert tries == [1]
    assert rows_of(line, trial) == 40


# -- upkeep --------------------------------------------------------------------------------------------------------


def test_upkeep_makes_the_coming_months_as_the_role_of_the_platform(trial: Any) -> None:
    partition_trial()
    with platform_scope("test"):
        assert partitions.extend() is False
    names = [f"{TRIAL}_{month(ahead):%Y_%m}" for ahead in range(2, MONTHS_AHEAD + 1)]
    assert [each.name for each in of(TRIAL)] == [f"{TRIAL}_first", *names, f"{TRIAL}_default"]
    before = of(TRIAL)
    with platform_scope("test"):
        partitions.extend()
    assert of(TRIAL) == before


def test_migrate_goes_on_when_a_table_is_locked_and_the_upkeep_makes_the_months(
    trial: Any, superuser_dsn: str, caplog: pytest.LogCaptureFixture
) -> None:
    partition_trial()
    with psycopg.connect(superuser_dsn) as insider, owner_line() as busy:
        insider.execute("GRANT SELECT ON contacts_contact TO silas_work")
        insider.execute("DELETE FROM silas_platform_installedversion")
        insider.commit()
        busy.execute(f"LOCK TABLE {TRIAL} IN ACCESS EXCLUSIVE MODE")
        _set_rights(using="owner")
        held = insider.execute("SELECT has_table_privilege('silas_work', 'contacts_contact', 'SELECT')").fetchone()
    assert held == (False,)
    assert migrated_by() == __version__
    assert "partitions_not_extended" in caplog.text
    assert [each.name for each in of(TRIAL)] == [f"{TRIAL}_first"]
    with platform_scope("test"):
        partitions.extend()
    assert len(of(TRIAL)) > 2


def test_rows_older_than_every_month_get_a_partition_of_their_own(divided: Any, line: Owner) -> None:
    """A company that was imported brings months that this installation has detached, perhaps twice."""
    line.execute(f"ALTER TABLE {TRIAL} DETACH PARTITION {TRIAL}_first")
    oldest = f"{TRIAL}_before_{month(2):%Y_%m}"
    for name in (oldest, f"{oldest}_2"):
        put(line, divided, date(2019, 5, 1))
        assert rows_of(line, divided, f"{TRIAL}_default") == 1
        assert partitions.make() == [f"{TRIAL}_default", name]
        assert rows_of(line, divided, f"{TRIAL}_default") == 0
        assert rows_of(line, divided, name) == 1
        with pytest.raises(psycopg.errors.InsufficientPrivilege, match="it stays as it is"):
            run(line, divided.pk, f"UPDATE {name} SET amount = 0")
        line.execute(f"ALTER TABLE {TRIAL} DETACH PARTITION {name}")


def test_worker_may_not_call_it(database: None) -> None:
    with (
        psycopg.connect(os.environ["DATABASE_WORK_URL"]) as worker,
        pytest.raises(psycopg.errors.InsufficientPrivilege),
    ):
        worker.execute("SELECT partitions_extend()")


def test_row_of_no_month_is_kept_and_moved_when_its_month_is_made(divided: Any, line: Owner) -> None:
    last = f"{TRIAL}_{month(MONTHS_AHEAD):%Y_%m}"
    line.execute(f"ALTER TABLE {TRIAL} DETACH PARTITION {last}")
    line.execute(f"DROP TABLE {last}")
    far = month(MONTHS_AHEAD).replace(year=2099)
    put(line, divided, month(MONTHS_AHEAD), far)
    assert rows_of(line, divided, f"{TRIAL}_default") == 2
    warnings = [each.text for each in doctor.examine() if each.subject == "partitions" and each.level == Level.WARNING]
    assert f"{TRIAL}_default holds rows of no month: run manage.py partitions make." in warnings
    with platform_scope("test"):
        partitions.extend()
    assert rows_of(line, divided, f"{TRIAL}_default") == 2
    said = StringIO()
    call_command("partitions", "make", stdout=said)
    assert said.getvalue().split() == ["made", last, "made", f"{TRIAL}_default"]
    assert rows_of(line, divided, last) == 1
    assert rows_of(line, divided, f"{TRIAL}_default") == 1
    assert rows_of(line, divided) == 42


def test_doctor_says_when_months_are_missing(trial: Any) -> None:
    partition_trial()
    assert (Level.OK, f"{TRIAL} has its months until {month(2)}.") in said_by_doctor()
    with owner_line(autocommit=True) as line:
        line.execute(f"ALTER TABLE {TRIAL} DETACH PARTITION {TRIAL}_first")
        line.execute(f"ALTER TABLE {TRIAL} ATTACH PARTITION {TRIAL}_first FOR VALUES FROM (MINVALUE) TO ('{month(1)}')")
    missing = f"{TRIAL} has months until {month(1)} only: run manage.py partitions make."
    assert (Level.WARNING, missing) in said_by_doctor()


def said_by_doctor() -> list[tuple[Level, str]]:
    return list(doctor.EXAMINATIONS["partitions"]())


# -- detaching -----------------------------------------------------------------------------------------------------


@pytest.fixture
def only_trial(monkeypatch: pytest.MonkeyPatch) -> None:
    """The command sees no other table, so that the tests' database keeps its own; and it runs when the first partition
    is over."""
    everything, later = partitions.list_partitions, now() + timedelta(days=70)
    monkeypatch.setattr(partitions_command, "now", lambda: later)
    monkeypatch.setattr(partitions, "list_partitions", lambda: [each for each in everything() if each.table == TRIAL])


def command(*arguments: str) -> str:
    said = StringIO()
    call_command("partitions", *arguments, stdout=said)
    return said.getvalue()


def test_detach_only_says_what_it_would_do(divided: Any, only_trial: None) -> None:
    before = of(TRIAL)
    assert f"would detach {TRIAL}_first" in command("detach", f"{month(2):%Y-%m}")
    assert of(TRIAL) == before
    assert command("detach", f"{month(1):%Y-%m}").strip() == "nothing to detach"


def test_detached_month_stays_unchanged_behind_its_wall_and_is_recorded(
    divided: Any, other_tenant: Any, only_trial: None, line: Owner
) -> None:
    put(line, divided, month(2))
    assert f"detached {TRIAL}_first rows=40" in command("detach", f"{month(2):%Y-%m}", "--yes")
    assert of(TRIAL)[0].name == f"{TRIAL}_{month(2):%Y_%m}"
    assert rows_of(line, divided) == 1
    assert rows_of(line, divided, f"{TRIAL}_first") == 40
    assert rows_of(line, other_tenant, f"{TRIAL}_first") == 0
    for statement in ("UPDATE {} SET amount = 0", "DELETE FROM {}", "TRUNCATE {}"):
        with pytest.raises(psycopg.errors.InsufficientPrivilege, match="stays as it is"):
            run(line, divided.pk, statement.format(f"{TRIAL}_first"))
    with platform_scope("test"):
        entry = AuditEntry.objects.filter(event="partition_detached").latest("seq")
    assert entry.actor == "command:partitions"
    assert json.loads(entry.data) == {"partition": f"{TRIAL}_first", "rows": 40}


def test_table_in_use_is_refused_after_a_second_and_nothing_is_recorded(divided: Any, only_trial: None) -> None:
    before = of(TRIAL)
    with owner_line() as reader:
        reader.execute(f"SELECT FROM {TRIAL}")
        with pytest.raises(CommandError, match="E_PARTITIONS_BUSY"):
            command("detach", f"{month(2):%Y-%m}", "--yes")
    assert of(TRIAL) == before


def test_month_in_use_and_those_to_come_are_not_detached(divided: Any) -> None:
    """Without a month that was made, no further one would be: each begins where the last one ends."""
    before = of(TRIAL)
    with pytest.raises(CommandError, match="E_PARTITIONS_MONTH"):
        command("detach", f"{month(1):%Y-%m}", "--yes")
    assert of(TRIAL) == before
    assert command("detach", f"{month(0):%Y-%m}").strip() == "nothing to detach"


@pytest.mark.parametrize("arguments", [["detach"], ["detach", "soon"], ["detach", "2026-13"], ["drop"]])
def test_other_words_are_refused(database: None, arguments: list[str]) -> None:
    with pytest.raises(CommandError):
        command(*arguments)


def test_list_names_every_partition(database: None) -> None:
    lines = command().splitlines()
    assert len(lines) == len(partitions.list_partitions())
    assert any(line.startswith(f"{LEDGER} {LEDGER}_default until=default") for line in lines)
