"""A whole installation on its own `var`, whose commands are run as an operator runs them."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import psycopg

from silas_platform.up.embedded import start_postgres
from silas_platform.up.environment import ROOT
from tests import nursery

_OWN = ("DATABASE_URL", "DATABASE_OWNER_URL", "DATABASE_WORK_URL", "REDIS_URL", "DJANGO_SETTINGS_MODULE")


@dataclass
class Installation:
    """An installation of one machine on its own `var`; its servers run while a command does."""

    var: Path

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        env = {name: value for name, value in os.environ.items() if name not in _OWN} | {"SILAS_VAR": str(self.var)}
        argv = [sys.executable, "manage.py", *arguments]
        return nursery.start(
            argv, cwd=ROOT, env=env, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True
        )

    def run(self, *arguments: str) -> tuple[int, str]:
        process = self.start(*arguments)
        said, _ = process.communicate(timeout=300)
        return process.returncode, said


def await_quiet(var: Path) -> None:
    """Until no program of a killed run works in this `var`."""
    lock = var / "up.lock"
    give_up = time.monotonic() + 60
    while lock.exists() and time.monotonic() < give_up:
        busy = subprocess.run(["flock", "--nonblock", str(lock), "true"]).returncode
        if not busy:
            return
        time.sleep(0.2)


def execute(var: Path, statement: str) -> None:
    """As a hostile administrator of the database, with every trigger asleep."""
    server = start_postgres(var, fsync=False)
    try:
        with psycopg.connect(server.superuser_dsn) as connection:
            connection.execute("SET session_replication_role = replica")
            changed = connection.execute(statement.encode())
            assert changed.rowcount > 0
    finally:
        server.stop()
