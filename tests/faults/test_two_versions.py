"""Versions n and n+1 run side by side while the database is migrated and people talk; n+2 then takes away what n used.

Nothing that was acknowledged is lost or answered twice, no change happens twice. After the contraction the processes of
version n do not go on: web is not ready and says why, a worker ends, and neither starts again.
"""

from __future__ import annotations

import json
import random
import shutil
import signal
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from silas_platform.worker_watchdog import SCHEMA_CHECK_SECONDS
from tests.faults.changes import Changes
from tests.faults.cluster import LIMITS, Crowd
from tests.faults.house import Answer, House, Process, Web, await_that, open_house
from tests.faults.visitor import Visitor

VISITORS, CHANGES_A_PHASE, TALK_SECONDS = 30, 2, 15.0
STOP_SECONDS = 60.0


@dataclass
class Upgrade:
    """The story of an upgrade; what was seen on its way."""

    n: House
    serving: list[Web] = field(default_factory=list)
    talked: list[Visitor] = field(default_factory=list)
    checks: list[tuple[int, str]] = field(default_factory=list)
    upgrades: list[str] = field(default_factory=list)
    before_migration: Answer | None = None
    old_web: Answer | None = None
    old_worker_said: str = ""
    old_worker_again: str = ""
    old_web_again: Answer | None = None
    new_web: Answer | None = None

    def run(self) -> None:
        self._migrate(self.n)
        self.changes = Changes(self.n, 3 * CHANGES_A_PHASE)
        waiting = iter(self.changes.items)
        old_web, old_worker = self.n.start_web(), self.n.start_worker()
        beat = self.n.start_beat()
        self._serve(old_web)
        self.changes.log_in(lambda: random.choice(self.serving))
        crowd = Crowd(VISITORS, lambda: random.choice(self.serving), self.changes.key)
        self._talk(waiting)

        # n+1: migrate beside n, start beside n, then n ends.
        next_one = self._version("second")
        new_web = next_one.start_web()
        await_that(lambda: self._answer(new_web), "the new web process answers")
        self.before_migration = self._answer(new_web)
        self._migrate(next_one)
        next_one.start_worker()
        self._serve(new_web)
        self._talk(waiting)
        self.serving.remove(old_web)
        assert self.n.trusted
        self._end(old_web.process, self.n.trusted)

        # n+2 contracts. A worker of n was forgotten, and a web process of n is started again.
        last = self._version("third")
        forgotten = self.n.start_web()
        await_that(forgotten.is_ready, "a web process of version n is ready on the schema of n+1")
        self._migrate(last)
        self.old_web = self._answer(forgotten)
        last_web = last.start_web()
        last.start_worker()
        self._serve(last_web)
        self.serving.remove(new_web)
        self._talk(waiting)
        await_that(lambda: old_worker.poll() is not None, "the worker of n ends", seconds=4 * SCHEMA_CHECK_SECONDS)
        self.old_worker_said = self.n.said_by(old_worker)
        again, old_web = self.n.start_worker(), self.n.start_web()
        await_that(lambda: again.poll() is not None, "the worker of n does not start")
        self.old_worker_again = self.n.said_by(again)
        await_that(lambda: self._answer(old_web), "the web process of n answers")
        self.old_web_again = self._answer(old_web)
        self.talked = crowd.end()
        self.changes.settle()
        self.new_web = self._answer(last_web)
        self.n.kill(beat)

    def _version(self, name: str) -> House:
        return replace(self.n, settings={**self.n.settings, "SILAS_TEST_VERSION": name}, trusted=None)

    def _migrate(self, house: House) -> None:
        check, done = house.manage("upgrade", "--check"), house.manage("upgrade")
        self.checks.append((check.returncode, check.stdout + check.stderr))
        assert done.returncode == 0, done.stdout + done.stderr
        self.upgrades.append(done.stdout)

    def _serve(self, web: Web) -> None:
        await_that(web.is_ready, "the web process is ready")
        self.serving.append(web)

    def _answer(self, web: Web) -> Answer | None:
        try:
            return web.ask("GET", "/health/ready")
        except OSError:
            return None

    def _talk(self, waiting: Iterator[dict[str, str]]) -> None:
        for _ in range(CHANGES_A_PHASE):
            self.changes.approve(next(waiting)["card"])
        time.sleep(TALK_SECONDS)

    def _end(self, *ended: Process) -> None:
        """As a supervisor does: SIGTERM, and time to finish."""
        for process in ended:
            process.send_signal(signal.SIGTERM)  # type: ignore[union-attr]
        for process in ended:
            await_that(lambda process=process: process.poll() is not None, "the process ends", seconds=STOP_SECONDS)


@pytest.fixture(scope="module")
def upgrade() -> Iterator[Upgrade]:
    var = Path(tempfile.mkdtemp(prefix="silas-versions-"))
    settings = {"DJANGO_SETTINGS_MODULE": "tests.faults.versions.settings", "SILAS_TEST_VERSION": "first"}
    house = open_house(var, "http://127.0.0.1:9", SILAS_PLAN_CARD_SECONDS="86400", **settings, **LIMITS)
    whole = Upgrade(house)
    try:
        whole.run()
        yield whole
    finally:
        house.stop()
        shutil.rmtree(var, ignore_errors=True)


def versions(upgrade: Upgrade, table: str) -> Counter[str]:
    return Counter(row["written_by"] for row in upgrade.n.rows(f"SELECT written_by FROM {table}"))


def test_new_version_waits_for_its_migrations(upgrade: Upgrade) -> None:
    assert upgrade.before_migration
    assert upgrade.before_migration.status == 503
    assert json.loads(upgrade.before_migration.body)["missing"] == ["database"]


def test_expanding_and_backfilling_run_beside_the_version_before(upgrade: Upgrade) -> None:
    code, said = upgrade.checks[1]
    assert code == 0, said
    assert "migrations pending=2" in said
    assert "can run beside the version before" in said


def test_both_versions_answered_visitors(upgrade: Upgrade) -> None:
    by = versions(upgrade, "silas_sessions_turn")
    assert by["first"] > 0
    assert by["second"] > 0
    assert by["third"] > 0


def test_no_row_lost_its_value(upgrade: Upgrade) -> None:
    assert set(versions(upgrade, "silas_sessions_turn")) == {"first", "second", "third"}
    assert set(versions(upgrade, "work_attempt")) <= {"first", "second", "third"}
    assert "first" in versions(upgrade, "work_attempt")


def test_everything_said_was_acknowledged_and_kept_once(upgrade: Upgrade) -> None:
    assert [visitor.unacknowledged for visitor in upgrade.talked if visitor.unacknowledged] == []
    kept = upgrade.n.rows("SELECT client_id FROM silas_sessions_chronicleentry WHERE sender = 'visitor'")
    said = [client_id for visitor in upgrade.talked for client_id in visitor.acknowledged]
    assert Counter(row["client_id"] for row in kept) == Counter(said)
    assert len(said) > VISITORS


def test_everything_said_was_answered_once(upgrade: Upgrade) -> None:
    turns = upgrade.n.rows(
        "SELECT session_id, message_seq, count(*) FROM silas_sessions_turn WHERE status = 'done'"
        " GROUP BY session_id, message_seq"
    )
    assert [row for row in turns if row["count"] != 1] == []
    assert len(turns) == sum(len(visitor.acknowledged) for visitor in upgrade.talked)
    assert [len(visitor.answers()) - len(visitor.acknowledged) for visitor in upgrade.talked] == [0] * VISITORS


def test_visitors_heard_each_entry_once_and_in_order(upgrade: Upgrade) -> None:
    assert [visitor.seqs() for visitor in upgrade.talked if visitor.seqs() != sorted(set(visitor.seqs()))] == []


def test_changes_were_carried_out_once(upgrade: Upgrade) -> None:
    assert upgrade.changes.effects_that_happened_twice() == []
    assert upgrade.changes.done_without_effect() == []
    assert upgrade.changes.unfinished() == []
    assert len(upgrade.changes.done()) == 3 * CHANGES_A_PHASE
    assert upgrade.changes.approvals_not_spent_once() == []


def test_old_web_is_not_ready_after_the_contraction_and_says_why(upgrade: Upgrade) -> None:
    for answer in (upgrade.old_web, upgrade.old_web_again):
        assert answer
        assert answer.status == 503
        assert json.loads(answer.body)["reason"].startswith("E_DB_NEWER: the database was migrated by a newer version")


def test_old_worker_ends_and_does_not_start_again(upgrade: Upgrade) -> None:
    assert "worker_outdated: E_DB_NEWER" in upgrade.old_worker_said
    assert "E_DB_NEWER" in upgrade.old_worker_again
    assert "ready." not in upgrade.old_worker_again


def test_new_version_serves_the_contracted_schema(upgrade: Upgrade) -> None:
    assert upgrade.new_web
    assert upgrade.new_web.status == 200


def test_audit_chain_verifies(upgrade: Upgrade) -> None:
    assert upgrade.changes.audit_chain()[:3] == "ok "
