"""A streaming replica of the tests' PostgreSQL."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import parse_qs, quote, urlsplit

import psycopg

from silas_platform.up import processes
from silas_platform.up.embedded import binary

READY_SECONDS = 60.0


@dataclass
class Replica:
    home: Path
    process: subprocess.Popen[bytes]

    def dsn(self, role: str) -> str:
        return f"postgresql://{role}@/silas?host={quote(str(self.home))}"

    def run(self, statement: str) -> None:
        with psycopg.connect(self.dsn("postgres"), autocommit=True) as connection:
            connection.execute(statement)

    def stop(self) -> None:
        processes.end_group(self.process)

    def remove(self) -> None:
        self.stop()
        shutil.rmtree(self.home, ignore_errors=True)


def start_replica(superuser_dsn: str) -> Replica:
    """Copy the server at this address and follow it. Raises `RuntimeError` with the replica's log."""
    sockets = parse_qs(urlsplit(superuser_dsn).query)["host"][0]
    owner = pwd.getpwuid(os.stat(sockets).st_uid).pw_name
    user = owner if os.geteuid() == 0 else None
    home = Path(tempfile.mkdtemp(prefix="silas-replica-"))
    shutil.chown(home, owner)
    data = home / "data"
    copy = [
        "-d",
        f"user=postgres host={sockets}",
        "-D",
        str(data),
        "-R",
        "-X",
        "stream",
        "--checkpoint=fast",
        "--no-sync",
    ]
    processes.run_as(user, [binary("pg_basebackup"), *copy], cwd=home)
    options = {"listen_addresses": "", "unix_socket_directories": str(home), "fsync": "off", "max_connections": "200"}
    argv = [binary("postgres"), "-D", data, *(f"--{name}={value}" for name, value in options.items())]
    log = home / "log"
    with log.open("wb") as output:
        replica = Replica(home, processes.spawn(argv, user=user, cwd=home, output=output))
    give_up = time.monotonic() + READY_SECONDS
    while time.monotonic() < give_up:
        try:
            psycopg.connect(replica.dsn("postgres")).close()
            return replica
        except psycopg.OperationalError:
            time.sleep(0.1)
    said = log.read_text()
    replica.remove()
    raise RuntimeError(f"the replica did not start:\n{said}")
