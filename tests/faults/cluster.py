"""Several machines on one: HAProxy before two web processes, two workers, PgBouncer, Redis with Sentinel, PostgreSQL.

HAProxy runs with deploy/haproxy.cfg. While many visitors talk and staff approve changes, every process is killed with
-9 in turn, and started again as its supervisor would.
"""

from __future__ import annotations

import asyncio
import os
import random
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from silas_platform.up import processes
from tests.factories.pooler import Pooler, start_pooler
from tests.factories.sentinel import Redises, start_redises
from tests.faults.changes import Changes
from tests.faults.house import ROOT, House, Process, Web, await_that
from tests.faults.visitor import Visitor
from tests.ports import free_port

# A visitor writes again so many seconds after an answer.
PAUSE_SECONDS = (6.0, 18.0)
# How long the others go on without the killed process, and how long everything is there before the next is killed.
GONE_SECONDS, WHOLE_SECONDS = 2.0, 3.0
ANSWER_SECONDS = 240.0
# All visitors come from one address, and write quicker than people.
LIMITS = dict.fromkeys(
    (
        "VISITOR_BURST",
        "SILAS_SOCKET_FRAMES",
        "SILAS_SOCKET_HANDSHAKES",
        "SILAS_MESSAGES_A_MINUTE",
        "SILAS_ADDRESS_MESSAGES_A_MINUTE",
        "SILAS_TENANT_MESSAGES_A_MINUTE",
        "SILAS_TENANT_PENDING_TURNS",
        "SILAS_MODEL_RUNS_A_MINUTE",
        "SILAS_TENANT_MODEL_RUNS_A_MINUTE",
    ),
    "1000000",
)


@dataclass
class Cluster:
    house: House
    visitors: int
    changes_count: int
    killed: list[str] = field(default_factory=list)
    talked: list[Visitor] = field(default_factory=list)
    redises: Redises | None = None
    pooler: Pooler | None = None
    proxy: Web | None = None

    def run(self) -> None:
        self._start()
        crowd = Crowd(self.visitors, lambda: self.proxy, self.changes.key)
        approver = threading.Thread(target=self._approve_all)
        approver.start()
        time.sleep(WHOLE_SECONDS)
        for name, kill in self._in_turn():
            kill()
            self.killed.append(name)
            time.sleep(WHOLE_SECONDS)
        approver.join()
        self.talked = crowd.end()
        self.changes.settle()

    def stop(self) -> None:
        """Whatever of it was started."""
        if self.proxy:
            self.house.kill(self.proxy.process)
        for server in (self.pooler, self.redises):
            if server:
                server.stop()

    # -- what runs -------------------------------------------------------------------------------------------------

    def _start(self) -> None:
        house = self.house
        self.redises = start_redises(Path(tempfile.mkdtemp(prefix="silas-sentinel-")))
        self.pooler = start_pooler(house.postgres.superuser_dsn)
        house.kill_redis()
        house.workers_have_network = True
        house.settings = {
            **house.settings,
            **LIMITS,
            **self.pooler.addresses(),
            "REDIS_URL": self.redises.url,
            "SILAS_TRUSTED_PROXIES": "1",
        }
        self.changes = Changes(house, self.changes_count)
        self.webs = [house.start_web(path=house.var / f"behind-{number}.sock") for number in (1, 2)]
        self.workers = [house.start_worker(), house.start_worker()]
        self.beat = house.start_beat()
        self.proxy = self._start_proxy(free_port())
        for web in (*self.webs, self.proxy):
            await_that(web.is_ready, "every web process is ready, and the proxy finds one")
        self.changes.log_in(lambda: self.proxy)

    def _start_proxy(self, port: int) -> Web:
        log = self.house.var / "haproxy.log"
        env = {
            **os.environ,
            "SILAS_BIND": f"127.0.0.1:{port}",
            "SILAS_HOST": "localhost",
            **{f"SILAS_WEB_{number}": f"unix@{web.path}" for number, web in enumerate(self.webs, 1)},
        }
        with log.open("ab") as output:
            argv = ["/usr/sbin/haproxy", "-db", "-f", str(ROOT / "deploy/haproxy.cfg")]
            process = processes.spawn(argv, env=env, cwd=ROOT, output=output)
        return Web(process, self.webs[0].path, log, port=port)

    # -- what is killed --------------------------------------------------------------------------------------------

    def _in_turn(self) -> list[tuple[str, Callable[[], None]]]:
        return [
            ("web 1", lambda: self._replace_web(0)),
            ("web 2", lambda: self._replace_web(1)),
            ("worker 1", lambda: self._replace_worker(0)),
            ("worker 2", lambda: self._replace_worker(1)),
            ("trusted worker", self._replace_trusted),
            ("beat", self._replace_beat),
            ("Redis", self._fail_over),
            ("sentinel", self._replace_sentinel),
            ("PgBouncer", self._replace_pooler),
            ("PostgreSQL", self._replace_database),
            ("HAProxy", self._replace_proxy),
        ]

    def _replace_web(self, number: int) -> None:
        old = self.webs[number]
        self._kill_holder(old.process)
        self.webs[number] = self.house.start_web(path=old.path)
        await_that(self.webs[number].is_ready, "the web process is ready again")

    def _replace_worker(self, number: int) -> None:
        self._kill_holder(self.workers[number])
        self.workers[number] = self.house.start_worker()

    def _replace_trusted(self) -> None:
        assert self.house.trusted
        self._kill_holder(self.house.trusted)
        self.house.trusted = self.house.start_trusted()

    def _replace_beat(self) -> None:
        self.house.kill(self.beat)
        self.beat = self.house.start_beat()

    def _kill_holder(self, process: Process) -> None:
        """Its leases run out meanwhile: nobody waits for them here."""
        self.house.kill(process)
        time.sleep(GONE_SECONDS)
        self.house.let_leases_run_out()

    def _fail_over(self) -> None:
        self.redises.fail_over()
        self.redises.start_replica()

    def _replace_sentinel(self) -> None:
        """The URL names it still: the others are asked."""
        process = next(iter(self.redises.sentinels.values()))
        process.kill()
        process.wait()

    def _replace_pooler(self) -> None:
        self.pooler.process.kill()
        self.pooler.process.wait()
        time.sleep(GONE_SECONDS)
        self.pooler.run()

    def _replace_database(self) -> None:
        self.house.kill_database()
        time.sleep(GONE_SECONDS)
        self.house.start_database()

    def _replace_proxy(self) -> None:
        self.house.kill(self.proxy.process)
        time.sleep(GONE_SECONDS)
        self.proxy = self._start_proxy(self.proxy.port)

    def _approve_all(self) -> None:
        for item in self.changes.items:
            self.changes.approve(item["card"])
            time.sleep(WHOLE_SECONDS)


class Crowd:
    """Visitors who talk from a thread of their own: processes are started and killed in another one."""

    def __init__(self, size: int, web: Callable[[], Web], key: str) -> None:
        self._visitors = [Visitor(web, key=key) for _ in range(size)]
        self._loop, self._over = asyncio.new_event_loop(), asyncio.Event()
        self._thread = threading.Thread(target=self._loop.run_until_complete, args=(self._talk(),), daemon=True)
        self._thread.start()

    def end(self) -> list[Visitor]:
        """Let everybody hear their last answer and go; everybody who came."""
        self._loop.call_soon_threadsafe(self._over.set)
        self._thread.join()
        self._loop.close()
        return self._visitors

    async def _talk(self) -> None:
        async with asyncio.TaskGroup() as group:
            for visitor in self._visitors:
                group.create_task(self._one(visitor))

    async def _one(self, visitor: Visitor) -> None:
        chance = random.Random()
        await self._pause(chance)
        async with visitor:
            while not self._over.is_set():
                with suppress(TimeoutError):
                    await visitor.ask("Hello there", seconds=ANSWER_SECONDS)
                await self._pause(chance)
            with suppress(TimeoutError):
                await visitor.hears_all(seconds=ANSWER_SECONDS)

    async def _pause(self, chance: random.Random) -> None:
        with suppress(TimeoutError):
            await asyncio.wait_for(self._over.wait(), chance.uniform(*PAUSE_SECONDS))
