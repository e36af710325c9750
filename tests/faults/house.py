"""A whole platform of its own, for tests that break it: PostgreSQL, Redis, web, worker and beat as real processes.

PostgreSQL writes through (fsync on): what is acknowledged must outlive a kill. Web processes listen on unix sockets;
worker and beat live in a network namespace without any interface, where every attempt to reach something is counted.
Rows are read as the database's superuser, past all of our code. Start processes from the main thread: they die with it.
"""

from __future__ import annotations

import http.client
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg
from psycopg.rows import dict_row

from kernel import fault_points
from silas_platform.up import processes
from silas_platform.up.embedded import PostgresServer, RedisServer, start_postgres, start_redis
from silas_platform.up.environment import KEYS, for_program
from tests import nursery, prepared

ROOT = Path(__file__).resolve().parents[2]
START_SECONDS = 90.0
TENANT, KEY = "meridian-insurance", "demo-meridian"
NO_NETWORK = ["unshare", *([] if os.geteuid() == 0 else ["--user", "--map-root-user"]), "--net", "--"]


Process = subprocess.Popen[bytes]


class UnixConnection(http.client.HTTPConnection):
    def __init__(self, path: Path) -> None:
        super().__init__("localhost", timeout=30)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(str(self._path))


@dataclass(frozen=True)
class Answer:
    status: int
    body: bytes
    headers: http.client.HTTPMessage


@dataclass
class Web:
    """One web process, or the one that took its place; with a `port`, the proxy that stands before all of them."""

    process: Process
    path: Path
    log: Path
    port: int = 0

    def ask(self, method: str, path: str, *, body: bytes | None = None, headers: Mapping[str, str] = {}) -> Answer:
        line = self._connect()
        try:
            line.request(method, path, body=body, headers=dict(headers))
            answer = line.getresponse()
            return Answer(answer.status, answer.read(), answer.headers)
        finally:
            line.close()

    def _connect(self) -> http.client.HTTPConnection:
        return (
            http.client.HTTPConnection("127.0.0.1", self.port, timeout=30) if self.port else UnixConnection(self.path)
        )

    def is_ready(self) -> bool:
        with suppress(OSError, http.client.HTTPException):
            return self.ask("GET", "/health/ready").status == 200
        return False


@dataclass
class House:
    var: Path
    provider: str
    postgres: PostgresServer
    redis: RedisServer
    settings: Mapping[str, str] = field(default_factory=dict)
    started: list[Process] = field(default_factory=list)
    logs: dict[int, Path] = field(default_factory=dict)
    without_network: dict[str, Process] = field(default_factory=dict)
    trusted: Process | None = None
    # Servers on loopback cannot be reached without a network.
    workers_have_network: bool = False

    # -- what runs -------------------------------------------------------------------------------------------------

    def env(self) -> dict[str, str]:
        own = {
            "SILAS_VAR": str(self.var),
            "DATABASE_URL": self.postgres.dsn_app,
            "DATABASE_OWNER_URL": self.postgres.dsn_owner,
            "DATABASE_WORK_URL": self.postgres.dsn_work,
            "REDIS_URL": self.redis.url,
            "DJANGO_SETTINGS_MODULE": "silas_platform.settings.test",
            "OPENAI_BASE_URL": self.provider,
            "OPENAI_API_KEY": "of-the-fake-provider",
            "PYTHONUNBUFFERED": "1",
        }
        return {**os.environ, **own, **self.settings}

    def start_web(self, *, network: bool = True, path: Path | None = None) -> Web:
        """Started, not yet ready. Without a network it reaches PostgreSQL and Redis all the same: by their sockets."""
        path = path or self.var / f"web-{len(self.started)}.sock"
        argv = ["daphne", "-u", str(path), "--application-close-timeout", "5", "--verbosity", "1"]
        process, log = self._spawn("web", [*argv, "silas_platform.asgi:application"], self.env(), network=network)
        return Web(process, path, log)

    def start_worker(self) -> Process:
        """The worker for approved work; beside the first one the trusted worker, which none of these tests kills."""
        if not self.trusted:
            self.trusted = self.start_trusted()
        name = ["-n", f"worker-{len(self.started)}@%h"]
        size = ["--loglevel=INFO", "--concurrency", "1", "--without-gossip", "--without-mingle"]
        argv = ["celery", "-A", "silas_platform", "worker", *name, *size]
        return self._spawn("worker", argv, for_program(self.env(), "worker"), network=self.workers_have_network)[0]

    def start_trusted(self) -> Process:
        own = ["-Q", "trusted", "-n", "trusted@%h", "--pool", "threads", "--concurrency", "2", "--loglevel=INFO"]
        argv = ["celery", "-A", "silas_platform", "worker", *own, "--without-gossip", "--without-mingle"]
        return self._spawn("trusted", argv, for_program(self.env(), "trusted"), network=self.workers_have_network)[0]

    def start_beat(self) -> Process:
        schedule = str(self.var / "beat-schedule")
        argv = ["celery", "-A", "silas_platform.beat", "beat", "--loglevel=INFO", "--pidfile=", "--schedule", schedule]
        # Like compose and chart: it is told no key and no database.
        told = {name: value for name, value in self.env().items() if not name.startswith(("DATABASE_", *KEYS))}
        return self._spawn("beat", argv, told, network=self.workers_have_network)[0]

    def faults_of(self, program: str) -> Path:
        """Where faults for this program's processes are left (kernel.fault_points)."""
        folder = self.var / "faults" / program
        folder.mkdir(parents=True, exist_ok=True)
        return folder

    def manage(self, *argv: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "manage.py", *argv]
        return nursery.run(command, cwd=ROOT, env=self.env(), capture_output=True, text=True, check=False)

    def furnish(self) -> None:
        """The demo tenants."""
        done = self.manage("seed_demo")
        assert done.returncode == 0, done.stdout + done.stderr

    def stop(self) -> None:
        for process in self.started:
            processes.end_group(process)
        self.postgres.stop()
        self.redis.stop()

    # -- what breaks -----------------------------------------------------------------------------------------------

    def kill(self, process: Process) -> None:
        """-9, with all it started."""
        processes.end_group(process)

    def kill_database(self) -> None:
        self.kill(self.postgres.process)

    def start_database(self) -> None:
        self.postgres = start_postgres(self.var)

    def kill_redis(self) -> None:
        self.kill(self.redis.process)

    def start_redis(self) -> None:
        self.redis = start_redis(self.var, persist=False)

    def hold_redis(self, *, still: bool) -> None:
        """It keeps its connections and says nothing any more; or goes on."""
        self.redis.process.send_signal(signal.SIGSTOP if still else signal.SIGCONT)

    # -- what is written down --------------------------------------------------------------------------------------

    def rows(self, query: str, *values: Any) -> list[dict[str, Any]]:
        with psycopg.connect(self.postgres.superuser_dsn, autocommit=True, row_factory=dict_row) as line:
            done = line.execute(query, values)  # type: ignore[call-overload]  # the tests' own SQL
            return done.fetchall() if done.description else []

    def use_models(self, name: str) -> None:
        """Who answers and plans from the next turn on; work is carried out by the built-in model."""
        models = psycopg.types.json.Jsonb({"proxy": name, "planner": name, "executor": "builtin:grounded"})
        self.rows(
            "UPDATE tenants_deployment SET model_names = %s, environment_keys = true WHERE public_key = %s", models, KEY
        )

    def said_by(self, process: Process) -> str:
        return self.logs[process.pid].read_text()

    def let_leases_run_out(self) -> None:
        """As if every holder had been silent for longer than its lease."""
        self.rows("UPDATE bus_queuemessage SET leased_until = now() WHERE state = 'leased'")

    def _spawn(self, name: str, module: list[str], env: Mapping[str, str], *, network: bool) -> tuple[Process, Path]:
        log = self.var / f"{name}-{len(self.started)}.log"
        armed = {**env, fault_points.VARIABLE: str(self.faults_of(name))}
        with log.open("wb") as output:
            process = nursery.spawn([sys.executable, "-m", *module], env=armed, output=output, network=network)
        self.started.append(process)
        self.logs[process.pid] = log
        if not network:
            self.without_network[name] = process
        return process, log


def open_house(var: Path, provider: str, **settings: str) -> House:
    """With the schema in it. `settings`: what else its processes find in their environment."""
    prepared.lay(var)
    postgres, redis = start_postgres(var), start_redis(var, persist=False)
    return House(var, provider, postgres, redis, settings=settings)


def await_that(ask: Callable[[], Any], what: str, *, seconds: float = START_SECONDS) -> None:
    give_up = time.monotonic() + seconds
    while not ask():
        assert time.monotonic() < give_up, f"never happened: {what}"
        time.sleep(0.05)
