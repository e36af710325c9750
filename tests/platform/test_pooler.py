"""The platform behind a stranger's PgBouncer: transaction mode and nothing else configured."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest

from silas_platform.settings.databases import databases
from silas_platform.up.embedded import PostgresServer, start_postgres
from silas_platform.up.environment import ROOT
from tests.factories.pooler import Pooler, is_installed, start_pooler
from tests.programs import SERVERS, do_without

# Locks, row security, leases, the money of calls: what depends on a connection's state.
THROUGH_POOLER = (
    "tests/tenants/test_scope_transactions.py",
    "tests/tenants/test_row_security.py",
    "tests/guard/test_rivals.py",
    "tests/bus/test_rivals.py",
    "tests/bus/test_delivery.py",
    "tests/audit/test_append.py",
)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PostgresServer]:
    server = start_postgres(tmp_path_factory.mktemp("pooled"), fsync=False)
    yield server
    server.stop()


@pytest.fixture(scope="module")
def pooler(server: PostgresServer) -> Iterator[Pooler]:
    if not is_installed():
        do_without("needs Debian's pgbouncer", SERVERS)
    pooler = start_pooler(server.superuser_dsn)
    yield pooler
    pooler.stop()


@pytest.mark.parametrize("role", ["silas_app", "silas_work"])
def test_roles_plan_by_index_however_they_connect(server: PostgresServer, pooler: Pooler, role: str) -> None:
    direct = server.dsn_app if role == "silas_app" else server.dsn_work
    pooled = pooler.addresses()["DATABASE_URL" if role == "silas_app" else "DATABASE_WORK_URL"]
    for address in (direct, pooled):
        with psycopg.connect(address) as connection:
            assert connection.execute("SELECT current_user, current_setting('enable_seqscan')").fetchone() == (
                role,
                "off",
            )


def test_nothing_is_asked_of_a_connection_that_poolers_refuse() -> None:
    """PgBouncer refuses start-up parameters that it does not know, and loses cursors between transactions."""
    for prepared in (True, False):
        made = databases("postgresql://silas_app@db/silas", owner_url="", prepared=prepared)["default"]
        options = made["OPTIONS"]
        assert isinstance(options, dict)
        assert "options" not in options
        assert made["DISABLE_SERVER_SIDE_CURSORS"] is not prepared
        assert ("prepare_threshold" in options) is prepared


def test_local_settings_stay_within_their_transaction(pooler: Pooler) -> None:
    """As many clients as the pool has no lines for: none sees what another one set for its transaction."""

    def seen(number: int) -> tuple[str, str | None]:
        with psycopg.connect(pooler.addresses()["DATABASE_URL"], prepare_threshold=None) as connection:
            connection.execute("SELECT set_config('silas.tenant', %s, true)", [str(number)])
            during = connection.execute("SELECT current_setting('silas.tenant', true)").fetchone()
            connection.commit()
            after = connection.execute("SELECT current_setting('silas.tenant', true)").fetchone()
        assert during
        assert after
        return during[0], after[0]

    with ThreadPoolExecutor(40) as rivals:
        found = list(rivals.map(seen, range(200)))
    assert [during for during, _ in found] == [str(number) for number in range(200)]
    assert {after for _, after in found} <= {None, ""}


@pytest.mark.slow
def test_platform_passes_through_pooler(pooler: Pooler) -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *THROUGH_POOLER]
    env = {name: value for name, value in os.environ.items() if not name.startswith(("DATABASE_", "DJANGO_", "REDIS_"))}
    done = subprocess.run(
        command, cwd=ROOT, env={**env, "SILAS_TEST_POOLER": "1"}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout[-4000:]
    assert " passed" in done.stdout
