"""Debian's PgBouncer in transaction mode before the tests' PostgreSQL: `SILAS_TEST_POOLER=1 make test` runs through it.

Nothing but the addresses is configured: what passes here passes with the defaults of a stranger's pooler. PgBouncer
before 1.21 keeps no prepared statements, so the platform is told not to make any.
"""

from __future__ import annotations

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

from tests.ports import free_port

ROLES = ("silas_app", "silas_work")
_CONFIG = """[databases]
silas = host={sockets} dbname=silas

[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
unix_socket_dir =
auth_type = trust
auth_file = {home}/users
pool_mode = transaction
pidfile = {home}/pid
"""


@dataclass
class Pooler:
    home: Path
    port: int
    argv: list[str]
    process: subprocess.Popen[bytes] = field(init=False)

    def run(self) -> None:
        """Start the process, also again where an earlier one died. Raises `RuntimeError` with its log."""
        with (self.home / "log").open("ab") as log:
            self.process = subprocess.Popen(self.argv, stdout=log, stderr=log)
        for _ in range(100):
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", self.port)) == 0:
                    return
            time.sleep(0.05)
        self.process.kill()
        raise RuntimeError(f"PgBouncer did not start:\n{(self.home / 'log').read_text()}")

    def addresses(self) -> dict[str, str]:
        """The settings of programs that connect through the pooler."""
        app, work = (f"postgresql://{role}@127.0.0.1:{self.port}/silas" for role in ROLES)
        return {"DATABASE_URL": app, "DATABASE_WORK_URL": work, "DATABASE_PREPARED": "0"}

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait(10)
        shutil.rmtree(self.home, ignore_errors=True)


def is_installed() -> bool:
    return _binary() is not None


def start_pooler(superuser_dsn: str) -> Pooler:
    """Start PgBouncer before the server at this address of a socket. Raises `RuntimeError` with its log."""
    sockets = parse_qs(urlsplit(superuser_dsn).query)["host"][0]
    home = Path(tempfile.mkdtemp(prefix="silas-tests-pooler-"))
    port = free_port()
    (home / "users").write_text("".join(f'"{role}" ""\n' for role in ROLES))
    (home / "pgbouncer.ini").write_text(_CONFIG.format(sockets=sockets, port=port, home=home))
    owner = pwd.getpwuid(os.stat(sockets).st_uid)
    for folder in Path(sockets).parents:  # the pooler is none of root's
        if folder.stat().st_uid == os.geteuid() and not folder.stat().st_mode & 0o001:
            folder.chmod(folder.stat().st_mode | 0o011)
    for path in (home, *home.iterdir()):
        os.chown(path, owner.pw_uid, owner.pw_gid)
    as_owner = ["-u", owner.pw_name] if os.geteuid() == 0 else []
    binary = _binary()
    if binary is None:
        raise RuntimeError("PgBouncer is not installed")
    pooler = Pooler(home, port, [binary, *as_owner, str(home / "pgbouncer.ini")])
    pooler.run()
    return pooler


def _binary() -> str | None:
    return shutil.which("pgbouncer", path=f"{os.environ['PATH']}:/usr/sbin")
