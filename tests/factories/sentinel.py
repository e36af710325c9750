"""Debian's Redis with a replica of it and three sentinels, on ports of their own, for tests of a failover."""

from __future__ import annotations

import shutil
import subprocess
import time
from dataclasses import dataclass, field
from pathlib import Path

import redis
from redis.sentinel import Sentinel

from tests.ports import free_port

MASTER = "silas"
READY_SECONDS = 30.0
_SENTINEL_CONFIG = """port {port}
bind 127.0.0.1
dir {home}
sentinel monitor {master} 127.0.0.1 {watched} 2
sentinel down-after-milliseconds {master} 1000
sentinel failover-timeout {master} 5000
sentinel parallel-syncs {master} 1
"""


@dataclass
class Redises:
    """`servers` and `sentinels`: the process at each port."""

    home: Path
    servers: dict[int, subprocess.Popen[bytes]] = field(default_factory=dict)
    sentinels: dict[int, subprocess.Popen[bytes]] = field(default_factory=dict)

    @property
    def url(self) -> str:
        hosts = ",".join(f"127.0.0.1:{port}" for port in self.sentinels)
        return f"redis+sentinel://{hosts}/{MASTER}/0"

    def master(self) -> int:
        """The port of the server that most sentinels call the master."""
        known = [("127.0.0.1", port) for port in self.sentinels]
        return int(Sentinel(known, socket_timeout=1).discover_master(MASTER)[1])  # type: ignore[no-untyped-call]

    def fail_over(self) -> int:
        """Kill the master with -9 and wait for another one; its port. The killed one is not started again."""
        killed = self.master()
        self.servers[killed].kill()
        self.servers.pop(killed).wait()
        give_up = time.monotonic() + READY_SECONDS
        while (new := self._master_or_none()) in (None, killed):
            assert time.monotonic() < give_up, "the sentinels chose no other master"
            time.sleep(0.1)
        assert new
        return new

    def start_replica(self) -> None:
        self._start_server(self.master())

    def stop(self) -> None:
        for process in (*self.sentinels.values(), *self.servers.values()):
            process.kill()
            process.wait()
        shutil.rmtree(self.home, ignore_errors=True)

    def start(self) -> None:
        master = self._start_server(None)
        self._start_server(master)
        for _ in range(3):
            self.start_sentinel(master)
        give_up = time.monotonic() + READY_SECONDS
        while not all(self._knows_everyone(port) for port in self.sentinels):
            assert time.monotonic() < give_up, "the sentinels did not find each other and the replica"
            time.sleep(0.1)

    def start_sentinel(self, master: int) -> None:
        port = free_port()
        home = self.home / f"sentinel-{port}"
        home.mkdir()
        config = home / "sentinel.conf"
        config.write_text(_SENTINEL_CONFIG.format(port=port, home=home, master=MASTER, watched=master))
        self.sentinels[port] = self._spawn("redis-sentinel", [str(config)], port)

    def _start_server(self, master: int | None) -> int:
        port = free_port()
        argv = ["--port", str(port), "--bind", "127.0.0.1", "--save", "", "--dir", str(self.home)]
        argv += ["--dbfilename", f"{port}.rdb", "--repl-diskless-sync-delay", "0"]
        argv += ["--replicaof", f"127.0.0.1 {master}"] if master else []
        self.servers[port] = self._spawn("redis-server", argv, port)
        return port

    def _spawn(self, program: str, argv: list[str], port: int) -> subprocess.Popen[bytes]:
        with (self.home / f"{port}.log").open("wb") as log:
            process = subprocess.Popen([program, *argv], stdout=log, stderr=log)
        give_up = time.monotonic() + READY_SECONDS
        while not _answers(port):
            assert time.monotonic() < give_up, f"{program} did not start: {(self.home / f'{port}.log').read_text()}"
            time.sleep(0.05)
        return process

    def _knows_everyone(self, port: int) -> bool:
        with redis.Redis(port=port, decode_responses=True) as client:
            state = client.sentinel_master(MASTER)
        return (int(state["num-slaves"]), int(state["num-other-sentinels"])) == (1, len(self.sentinels) - 1)

    def _master_or_none(self) -> int | None:
        try:
            return self.master()
        except redis.RedisError:
            return None


def is_installed() -> bool:
    return bool(shutil.which("redis-server") and shutil.which("redis-sentinel"))


def start_redises(home: Path) -> Redises:
    """Two servers and three sentinels that know each other."""
    home.mkdir(exist_ok=True)
    made = Redises(home)
    try:
        made.start()
    except BaseException:
        made.stop()
        raise
    return made


def _answers(port: int) -> bool:
    try:
        with redis.Redis(port=port, socket_timeout=1) as client:
            return bool(client.ping())
    except redis.RedisError:
        return False
