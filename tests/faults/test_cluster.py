"""Two hundred visitors on a cluster whose every process is killed in turn: nothing is lost or done twice."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.factories import pooler, sentinel
from tests.faults.cluster import Cluster
from tests.faults.house import await_that, open_house
from tests.programs import SERVERS, do_without

VISITORS, CHANGES = 200, 10


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    if not (pooler.is_installed() and sentinel.is_installed() and os.access("/usr/sbin/haproxy", os.X_OK)):
        do_without("needs Debian's haproxy, pgbouncer, redis-server and redis-sentinel", SERVERS)
    var = Path(tempfile.mkdtemp(prefix="silas-cluster-"))
    house = open_house(var, "http://127.0.0.1:9", SILAS_PLAN_CARD_SECONDS="86400")
    whole = Cluster(house, VISITORS, CHANGES)
    try:
        whole.run()
        yield whole
    finally:
        house.stop()
        whole.stop()
        shutil.rmtree(var, ignore_errors=True)


def test_every_process_was_killed(cluster: Cluster) -> None:
    assert cluster.killed == [
        *("web 1", "web 2", "worker 1", "worker 2", "trusted worker", "beat"),
        *("Redis", "sentinel", "PgBouncer", "PostgreSQL", "HAProxy"),
    ]


def test_everything_said_was_acknowledged(cluster: Cluster) -> None:
    assert [visitor.unacknowledged for visitor in cluster.talked if visitor.unacknowledged] == []
    assert all(visitor.acknowledged for visitor in cluster.talked)


def test_everything_acknowledged_was_kept_once(cluster: Cluster) -> None:
    kept = cluster.house.rows(
        "SELECT client_id, session_id::text, seq FROM silas_sessions_chronicleentry WHERE sender = 'visitor'"
    )
    acknowledged = {
        (client_id, visitor.session_id, seq)
        for visitor in cluster.talked
        for client_id, seq in visitor.acknowledged.items()
    }
    assert Counter((row["client_id"], row["session_id"], row["seq"]) for row in kept) == Counter(acknowledged)


def test_everything_said_was_answered_once(cluster: Cluster) -> None:
    turns = cluster.house.rows(
        "SELECT session_id::text, message_seq, count(*) FROM silas_sessions_turn WHERE status = 'done'"
        " GROUP BY session_id, message_seq"
    )
    assert [row for row in turns if row["count"] != 1] == []
    said = sum(len(visitor.acknowledged) for visitor in cluster.talked)
    assert len(turns) == said
    assert [len(visitor.answers()) - len(visitor.acknowledged) for visitor in cluster.talked] == [0] * VISITORS


def test_visitors_heard_each_entry_once_and_in_order(cluster: Cluster) -> None:
    assert [visitor.seqs() for visitor in cluster.talked if visitor.seqs() != sorted(set(visitor.seqs()))] == []


def test_most_changes_were_carried_out_and_none_twice(cluster: Cluster) -> None:
    """An effect that may have happened is left to a person."""
    assert cluster.changes.effects_that_happened_twice() == []
    assert cluster.changes.done_without_effect() == []
    assert len(cluster.changes.done()) >= CHANGES / 2


def test_every_change_ended_or_waits_and_says_why(cluster: Cluster) -> None:
    assert cluster.changes.unfinished() == []
    assert cluster.changes.ended_without_reason() == []


def test_every_card_was_decided_once_and_every_approval_spent_once(cluster: Cluster) -> None:
    assert cluster.changes.cards_not_decided_once() == []
    assert cluster.changes.approvals_not_spent_once() == []


def test_nothing_is_due_any_more(cluster: Cluster) -> None:
    await_that(lambda: not cluster.changes.due(), "nothing is due")


def test_audit_chain_verifies(cluster: Cluster) -> None:
    assert cluster.changes.audit_chain()[:3] == "ok "
