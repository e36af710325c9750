"""Our own PostgreSQL and Redis: roles, restarts after a kill, long paths, and nothing left running."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import psycopg
import pytest
import redis

from silas_platform.up import embedded
from silas_platform.up.embedded import PostgresServer, RedisServer, start_postgres, start_redis
from tests.platform.runs import eventually, python, remains

STARTS_BOTH = """
import time
from silas_platform.up.embedded import start_postgres, start_redis
start_postgres(var, fsync=False)
start_redis(var, persist=False)
print("both run", flush=True)
time.sleep(60)
"""


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("embedded")


@pytest.fixture(scope="module")
def postgres(home: Path) -> Iterator[PostgresServer]:
    server = start_postgres(home, fsync=False)
    yield server
    server.stop()


@pytest.fixture
def redis_server(tmp_path: Path) -> Iterator[RedisServer]:
    server = start_redis(tmp_path, persist=True)
    yield server
    server.stop()


def test_application_role_uses_what_the_owner_makes_and_changes_or_makes_nothing(postgres: PostgresServer) -> None:
    with psycopg.connect(postgres.dsn_owner) as owner:
        owner.execute("CREATE TABLE made_later (id serial PRIMARY KEY, place vector(3))")
    with psycopg.connect(postgres.dsn_app) as app:
        row = app.execute("INSERT INTO made_later (place) VALUES ('[1,2,3]') RETURNING id").fetchone()
    assert row == (1,)
    for statement in ("CREATE TABLE mine (id int)", "ALTER TABLE made_later NO FORCE ROW LEVEL SECURITY"):
        with psycopg.connect(postgres.dsn_app) as app, pytest.raises(psycopg.errors.InsufficientPrivilege):
            app.execute(statement.encode())


def listening(server: PostgresServer | RedisServer) -> list[Any]:
    return [line for line in psutil.Process(server.process.pid).net_connections("tcp") if line.status == "LISTEN"]


def test_postgres_is_reachable_by_its_own_user_only_and_never_runs_as_root(
    postgres: PostgresServer, home: Path
) -> None:
    assert listening(postgres) == []
    assert (home / "postgres" / "socket").stat().st_mode & 0o077 == 0
    assert psutil.Process(postgres.process.pid).uids().effective != 0


def test_postgres_path_too_long_for_socket_works(tmp_path: Path) -> None:
    server = start_postgres(tmp_path / ("long" * 30), fsync=False)
    try:
        with psycopg.connect(server.dsn_app) as connection:
            assert connection.execute("SELECT 1").fetchone() == (1,)
    finally:
        server.stop()


def test_postgres_killed_keeps_committed_rows(tmp_path: Path) -> None:
    killed = start_postgres(tmp_path)
    with psycopg.connect(killed.dsn_owner) as connection:
        connection.execute("CREATE TABLE kept AS SELECT 7 AS number")
    os.killpg(killed.process.pid, signal.SIGKILL)
    killed.process.wait()
    again = start_postgres(tmp_path)
    try:
        with psycopg.connect(again.dsn_app) as connection:
            assert connection.execute("SELECT number FROM kept").fetchone() == (7,)
    finally:
        again.stop()


def test_postgres_pid_file_of_living_stranger_does_not_block_start(postgres: PostgresServer, tmp_path: Path) -> None:
    start_postgres(tmp_path, fsync=False).stop()
    pid_file = tmp_path / "postgres" / "data" / "postmaster.pid"
    pid_file.write_text(f"{postgres.process.pid}\n{pid_file.parent}\n1\n5432\n\n\n\nready\n")
    server = start_postgres(tmp_path, fsync=False)
    server.stop()
    assert server.process.returncode == 0


def test_postgres_half_made_cluster_is_made_again(tmp_path: Path) -> None:
    draft = tmp_path / "postgres" / "data.draft"
    draft.mkdir(parents=True)
    (draft / "PG_VERSION").write_text("18\n")
    server = start_postgres(tmp_path, fsync=False)
    server.stop()
    assert not draft.exists()


def test_postgres_that_cannot_start_says_why(tmp_path: Path) -> None:
    start_postgres(tmp_path, fsync=False).stop()
    (tmp_path / "postgres" / "data" / "PG_VERSION").write_text("12\n")
    with pytest.raises(RuntimeError, match="incompatible"):
        start_postgres(tmp_path, fsync=False)


def test_servers_of_killed_process_end_with_it(tmp_path: Path) -> None:
    with subprocess.Popen(python(f"var = {str(tmp_path)!r}\n{STARTS_BOTH}"), stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None and parent.stdout.readline() == b"both run\n"
        parent.kill()
    assert eventually(lambda: not remains(tmp_path)), remains(tmp_path)


def test_redis_is_not_reachable_over_network(redis_server: RedisServer) -> None:
    assert listening(redis_server) == []


def test_redis_killed_keeps_what_it_had(tmp_path: Path) -> None:
    killed = start_redis(tmp_path)
    with redis.Redis.from_url(killed.url) as client:
        client.set("kept", "7")
        client.wait(0, 0)
    killed.process.kill()
    killed.process.wait()
    again = start_redis(tmp_path)
    try:
        with redis.Redis.from_url(again.url) as client:
            assert client.get("kept") == b"7"
    finally:
        again.stop()


def test_redis_left_running_is_replaced(tmp_path: Path) -> None:
    left = start_redis(tmp_path, persist=False)
    again = start_redis(tmp_path, persist=False)
    try:
        assert left.process.wait(60) is not None
    finally:
        again.stop()


def test_long_path_becomes_short_and_stays_same() -> None:
    long = Path("/somewhere") / ("x" * 120)
    assert embedded.redis_url(long) == embedded.redis_url(long)
    assert len(embedded.redis_url(long)) < 100
