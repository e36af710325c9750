"""An external PostgreSQL given as its superuser is used with a role that row-level security binds."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from silas_platform.up.embedded import ROLES_SQL, PostgresServer, binary, start_postgres
from silas_platform.up.environment import ROOT, StartRefused
from silas_platform.up.roles import with_bound_roles


@pytest.fixture(scope="module")
def given(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PostgresServer]:
    server = start_postgres(tmp_path_factory.mktemp("given"), fsync=False)
    yield server
    server.stop()


@pytest.fixture
def env(given: PostgresServer, tmp_path: Path) -> dict[str, str]:
    return {"SILAS_VAR": str(tmp_path), "DATABASE_URL": given.superuser_dsn}


def test_superuser_is_replaced_by_the_roles_which_later_commands_use(env: dict[str, str], tmp_path: Path) -> None:
    told = with_bound_roles(env, make=True)
    for name, role in (("URL", "silas_app"), ("OWNER_URL", "silas_owner"), ("WORK_URL", "silas_work")):
        with psycopg.connect(told[f"DATABASE_{name}"]) as connection:
            assert connection.execute("SELECT current_user").fetchone() == (role,)
    assert with_bound_roles(env, make=False) == told
    assert [file.stat().st_mode & 0o777 for file in (tmp_path / "keys").iterdir()] == [0o600]


def test_start_after_an_earlier_version_makes_what_is_new_and_keeps_the_passwords(
    env: dict[str, str], tmp_path: Path
) -> None:
    before = with_bound_roles(env, make=True)
    (kept,) = (tmp_path / "keys").iterdir()
    kept.write_text(json.dumps({name: before[name] for name in ("DATABASE_URL", "DATABASE_OWNER_URL")}))
    after = with_bound_roles(env, make=True)
    assert after["DATABASE_URL"] == before["DATABASE_URL"]
    assert "silas_work:" in after["DATABASE_WORK_URL"]


def test_script_of_the_containers_makes_every_role_and_may_run_again(given: PostgresServer, tmp_path: Path) -> None:
    for name in ("postgres", "database_app", "database_owner", "database_work"):
        (tmp_path / f"{name}_password").write_text(f"word's-of-{name}")
    host = given.superuser_dsn.rpartition("host=")[2].replace("%2F", "/")
    told = {"PGHOST": host, "PGDATABASE": "silas", "SECRETS": str(tmp_path), "ROLES_SQL": str(ROLES_SQL)}
    path = f"{binary('psql').parent}:{os.environ['PATH']}"
    for _ in range(2):
        script = ["sh", ROOT / "deploy" / "postgres-roles.sh"]
        subprocess.run(script, env={**told, "PATH": path}, check=True, capture_output=True, cwd=tmp_path)
    with psycopg.connect(given.superuser_dsn) as connection:
        found = connection.execute("SELECT count(*) FROM pg_authid WHERE rolname ~ '^silas_' AND rolpassword <> ''")
        assert found.fetchone() == (3,)


def test_command_before_first_start_makes_nothing(env: dict[str, str]) -> None:
    assert with_bound_roles(env, make=False) == env


def test_role_that_is_no_superuser_and_one_with_an_owner_beside_it_are_left_alone(
    env: dict[str, str], given: PostgresServer
) -> None:
    for told in ({**env, "DATABASE_URL": given.dsn_app}, {**env, "DATABASE_OWNER_URL": "postgresql://o@db/silas"}):
        assert with_bound_roles(told, make=True) == told


def test_server_that_does_not_answer_is_refused(env: dict[str, str], tmp_path: Path) -> None:
    nowhere = {**env, "DATABASE_URL": f"postgresql://postgres@/silas?host={tmp_path}"}
    with pytest.raises(StartRefused, match="DATABASE_URL cannot be used"):
        with_bound_roles(nowhere, make=True)
