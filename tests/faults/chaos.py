"""Break one part of a working house at one named point, again and again, while approved changes are carried out.

Every round approves one change over HTTP, or says something in a conversation, waits until a process stands at the
point, and kills: that process itself (-9, at that very line), or PostgreSQL, Redis, beat, the web process or the worker
while it stands still there; then whatever was killed is started again and the round is over. Nobody waits for the
change: recovery and the next faults run into each other, as they would. At the end everything comes to rest.
"""

from __future__ import annotations

import asyncio
import os
import random
import signal
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from kernel import fault_points
from kernel.fault_points import Action
from tests.faults.changes import Changes
from tests.faults.house import House, Web, await_that
from tests.faults.visitor import Visitor

AT_WEB = (("approvals.decided", 1), ("bus.before_poke", 1), ("approvals.committed", 1))
# A conversation's turn leases and admits in the web process.
IN_TURN = (("bus.leased", 1), ("guard.admitted", 1), ("guard.before_settle", 1))
# The model's call is admitted before the tool's, and settled after it.
AT_WORKER = (
    ("bus.leased", 1),
    ("work.leased", 1),
    ("work.begun", 1),
    ("guard.admitted", 1),
    ("guard.admitted", 2),
    ("guard.before_dispatch", 1),
    ("guard.after_dispatch", 1),
    ("guard.before_settle", 1),
    ("guard.before_settle", 2),
    ("guard.after_settle", 1),
    ("work.before_verification", 1),
    ("work.after_verification", 1),
    ("work.before_ack", 1),
    ("work.after_ack", 1),
)
VICTIMS = ("worker", "web", "beat", "postgres", "redis")
REACH_SECONDS = 60.0


@dataclass(frozen=True)
class Fault:
    """`side`: which program passes the point; `time`: at which passing it is met."""

    side: str
    point: str
    time: int
    victim: str


def plan(rounds: int, seed: int) -> list[Fault]:
    """Every victim at every point before any pair comes again, in an order that `seed` decides."""
    points = [("web", *point) for point in AT_WEB + IN_TURN] + [("worker", *point) for point in AT_WORKER]
    pairs = [Fault(*point, victim) for point in points for victim in VICTIMS]
    chance, faults = random.Random(seed), []
    while len(faults) < rounds:
        faults += chance.sample(pairs, len(pairs))
    return faults[:rounds]


@dataclass
class Chaos:
    house: House
    faults: list[Fault]
    seen: dict[str, dict[str, Any]] = field(default_factory=dict)
    missed: list[Fault] = field(default_factory=list)
    forgotten: list[str] = field(default_factory=list)

    def run(self) -> None:
        self._furnish()
        for number, fault in enumerate(self.faults):
            card = self.changes.items[number]["card"]
            self._round(fault, self.talker.say if _is_said(fault) else partial(self.changes.approve, card))
            self._look_at_budgets()
        self.changes.settle(self._keep_a_worker)
        self._look_at_budgets()
        self.talker.stop()

    def is_at_rest(self) -> bool:
        self._keep_a_worker()
        return not self.changes.due()

    # -- before ----------------------------------------------------------------------------------------------------

    def _furnish(self) -> None:
        self.changes = Changes(self.house, len(self.faults))
        self.web, self.spare = self.house.start_web(), self.house.start_web()
        self.worker, self.beat = self.house.start_worker(), self.house.start_beat()
        await_that(self.web.is_ready, "the web process is ready")
        self.changes.log_in(lambda: self.web)
        self.talker = Talker(lambda: self.web, self.changes.key)

    # -- one round -------------------------------------------------------------------------------------------------

    def _round(self, fault: Fault, begin: Callable[[], None]) -> None:
        folder = self.house.faults_of(fault.side)
        last = Action.KILL if fault.victim == fault.side else Action.STOP
        fault_points.plant(folder, fault.point, *[Action.PASS] * (fault.time - 1), last)
        press = threading.Thread(target=begin)
        press.start()
        process = self._whoever_meets(folder, fault)
        if process is not None:
            self._strike(fault, process)
        press.join()

    def _whoever_meets(self, folder: Path, fault: Fault) -> int | None:
        """The process that took the fault, dead or standing still by now; nobody, and the fault is taken away."""
        give_up = time.monotonic() + REACH_SECONDS
        while time.monotonic() < give_up:
            found = fault_points.processes_that_took(folder, fault.point)
            if found and _stands_or_is_dead(found[0]):
                (folder / f"{fault.point}.taken.{found[0]}").unlink()
                return found[0]
            self._keep_a_worker()
            time.sleep(0.01)
        (folder / fault.point).unlink(missing_ok=True)
        self.missed.append(fault)
        return None

    def _keep_a_worker(self) -> None:
        """As whoever supervises one does: a worker that has ended itself is started again."""
        if _state_of(self.worker.pid) in "ZX":
            self.house.kill(self.worker)
            self.worker = self.house.start_worker()

    def _strike(self, fault: Fault, process: int) -> None:
        match fault.victim:
            case "postgres":
                self.house.kill_database()
                self.house.start_database()
            case "redis":
                self.house.kill_redis()
                self.house.start_redis()
            case "beat":
                self.house.kill(self.beat)
                self.beat = self.house.start_beat()
            case "web":
                self._replace_web()
            case "worker" if fault.side == "web":
                self.house.kill(self.worker)
                self.worker = self.house.start_worker()
        with suppress(ProcessLookupError):
            os.kill(process, signal.SIGCONT)  # before anything that would wait for a row that it holds
        if fault.victim in ("worker", "web"):
            self.house.let_leases_run_out()

    def _replace_web(self) -> None:
        """The other one serves at once; a new one is started behind it."""
        self.house.kill(self.web.process)
        await_that(self.spare.is_ready, "the other web process is ready")
        self.web, self.spare = self.spare, self.house.start_web()

    # -- budgets never shrink --------------------------------------------------------------------------------------

    def _look_at_budgets(self) -> None:
        """What was counted as used before is counted still."""
        with suppress(Exception):  # PostgreSQL may be starting
            for row in self.house.rows("SELECT id::text, budget_used FROM work_workitem WHERE type = 'task'"):
                before, after = self.seen.get(row["id"], {}), row["budget_used"]
                self.forgotten += [row["id"] for name in before if float(after[name]) < float(before[name])]
                self.seen[row["id"]] = after


class Talker:
    """One visitor in one conversation, in a thread of its own: the faults are made in another."""

    def __init__(self, web: Callable[[], Web], key: str) -> None:
        self._loop, self._over = asyncio.new_event_loop(), asyncio.Event()
        self._ready = threading.Event()
        self.visitor = Visitor(web, key=key)
        self._thread = threading.Thread(target=self._loop.run_until_complete, args=(self._stay(),), daemon=True)
        self._thread.start()
        self._ready.wait(60)

    async def _stay(self) -> None:
        async with self.visitor:
            self._ready.set()
            await self._over.wait()
            with suppress(TimeoutError):
                await self.visitor.hears_all()

    def say(self) -> None:
        asyncio.run_coroutine_threadsafe(self.visitor.say("Hello there"), self._loop).result(30)

    def stop(self) -> None:
        self._loop.call_soon_threadsafe(self._over.set)
        self._thread.join()
        self._loop.close()


def _is_said(fault: Fault) -> bool:
    return fault.side == "web" and (fault.point, fault.time) in IN_TURN


def _stands_or_is_dead(process: int) -> bool:
    return _state_of(process) in "TtZX"


def _state_of(process: int) -> str:
    """As the kernel names it; X where there is none any more."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return "X"
