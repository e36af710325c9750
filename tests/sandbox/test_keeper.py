"""The small process that makes sandboxes, and its copies: what they hold, and what happens when one is killed."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from sandbox import Backend, SandboxResult, SandboxSpec, keeper_client
from sandbox.runner import run_on
from tests.sandbox.test_limits import processes_named

REPOSITORY = Path(__file__).resolve().parents[2]
PYTHON = ["python3", "-I", "-S", "-c"]
# A process of ours that runs a long script in a sandbox, or runs one in itself and one in a forked copy.
RUNS_LONG = """
from sandbox import SandboxSpec, run
run(SandboxSpec(["python3", "-I", "-S", "-c", "import time; time.sleep(60)  # {marker}"]))
"""
RUNS_IN_BOTH = """
import os
from sandbox import SandboxSpec, run
first = run(SandboxSpec(["echo", "parent"])).stdout
child = os.fork()
if child == 0:
    os.write(1, run(SandboxSpec(["echo", "child"])).stdout.encode())
    os._exit(0)
os.waitpid(child, 0)
os.write(1, (first + run(SandboxSpec(["echo", "parent again"])).stdout).encode())
"""


@pytest.fixture
def keeper(isolation: Backend) -> psutil.Process:
    run_on(isolation, SandboxSpec(["true"]))
    return psutil.Process(keeper_client.own_keeper().process.pid)


@pytest.fixture
def under_way(isolation: Backend, keeper: psutil.Process) -> Iterator[Callable[[], SandboxResult]]:
    """A run that would take a minute; call it for its result."""
    results: list[SandboxResult] = []
    spec = SandboxSpec([*PYTHON, "import time; time.sleep(60)  # under-way"], timeout_seconds=20)
    thread = threading.Thread(target=lambda: results.append(run_on(isolation, spec)))
    thread.start()
    await_that(lambda: processes_named("under-way"))

    def result() -> SandboxResult:
        thread.join(15)
        return results[0]

    yield result
    thread.join()


def await_that(ask: Callable[[], object]) -> None:
    give_up = time.monotonic() + 10
    while not ask():
        assert time.monotonic() < give_up
        time.sleep(0.02)


def overseers(keeper: psutil.Process) -> list[psutil.Process]:
    """Those with a run; one more stands ready."""
    return [child for child in keeper.children() if _has_children(child)]


def _has_children(process: psutil.Process) -> bool:
    try:
        return bool(process.children())
    except psutil.NoSuchProcess:  # it ended while we looked
        return False


def test_keeper_knows_nothing_of_our_environment(keeper: psutil.Process) -> None:
    assert set(keeper.environ()) == {"PATH"}


def test_keeper_holds_nothing_of_ours_but_its_line(keeper: psutil.Process) -> None:
    targets = {os.readlink(f"/proc/{keeper.pid}/fd/{name}") for name in os.listdir(f"/proc/{keeper.pid}/fd")}
    assert {target.split(":")[0] for target in targets} <= {"socket", "/dev/null", "pipe"}


def test_keeper_has_loaded_nothing_of_ours_but_itself(keeper: psutil.Process) -> None:
    loaded = Path(f"/proc/{keeper.pid}/maps").read_text()
    assert "site-packages" not in loaded


def test_keeper_that_was_killed_is_replaced(isolation: Backend, keeper: psutil.Process) -> None:
    keeper.kill()
    keeper.wait()
    assert run_on(isolation, SandboxSpec(["echo", "again"])).stdout == "again\n"


def drop_two(line: socket.socket) -> None:
    """As copies do that are killed with a request in their hands: its pipes close before their line does."""
    with line:
        for _ in range(2):
            _, descriptors, _, _ = socket.recv_fds(line, 16, 5)
            for descriptor in descriptors:
                os.close(descriptor)


def test_run_that_a_dying_keeper_took_is_made_by_another(isolation: Backend, keeper: psutil.Process) -> None:
    """The line of a keeper that was killed stays open for a moment after the run is lost; nobody reads it any more."""
    asked = keeper_client.own_keeper()
    asked.socket.close()
    asked.socket, line = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    thread = threading.Thread(target=drop_two, args=[line], daemon=True)
    thread.start()
    assert run_on(isolation, SandboxSpec(["echo", "again"])).stdout == "again\n"


def test_run_under_way_survives_its_keeper(
    isolation: Backend, keeper: psutil.Process, under_way: Callable[[], SandboxResult]
) -> None:
    (overseer,) = overseers(keeper)
    keeper.kill()
    assert overseer.is_running()
    overseer.kill()
    under_way()


def test_run_whose_overseer_is_killed_has_failed(
    keeper: psutil.Process, under_way: Callable[[], SandboxResult]
) -> None:
    (overseer,) = overseers(keeper)
    overseer.kill()
    assert under_way().reason == "sandbox_failed"


def test_nothing_outlives_a_killed_overseer(keeper: psutil.Process, under_way: Callable[[], SandboxResult]) -> None:
    (overseer,) = overseers(keeper)
    overseer.kill()
    under_way()
    await_that(lambda: not processes_named("under-way"))


def test_run_whose_overseer_stands_still_is_over_at_the_backstop(isolation: Backend) -> None:
    results: list[SandboxResult] = []
    spec = SandboxSpec([*PYTHON, "import time; time.sleep(60)  # stands-still"], timeout_seconds=1)
    run_on(isolation, SandboxSpec(["true"]))
    thread = threading.Thread(target=lambda: results.append(run_on(isolation, spec)))
    thread.start()
    await_that(lambda: processes_named("stands-still"))
    (overseer,) = overseers(psutil.Process(keeper_client.own_keeper().process.pid))
    overseer.suspend()
    thread.join(15)
    assert results[0].reason == "timeout"
    await_that(lambda: not processes_named("stands-still"))


def test_nothing_outlives_whoever_asked_for_it() -> None:
    marker = "orphaned-run"
    process = subprocess.Popen([sys.executable, "-c", RUNS_LONG.format(marker=marker)], cwd=REPOSITORY)
    await_that(lambda: processes_named(f"sleep(60)  # {marker}"))
    keeper, *_ = psutil.Process(process.pid).children()
    process.send_signal(signal.SIGKILL)
    process.wait()
    await_that(lambda: not processes_named(f"sleep(60)  # {marker}"))
    await_that(lambda: not keeper.is_running())


def test_forked_copy_has_a_keeper_of_its_own() -> None:
    said = subprocess.run(
        [sys.executable, "-c", RUNS_IN_BOTH], cwd=REPOSITORY, capture_output=True, text=True, timeout=30, check=False
    )
    assert said.stdout == "child\nparent\nparent again\n", said.stderr


def test_two_threads_that_start_at_once_share_one_keeper() -> None:
    keeper_client.replace_keeper(keeper_client.own_keeper())
    started = threading.Barrier(4)
    found: list[int] = []

    def ask() -> None:
        started.wait()
        found.append(keeper_client.own_keeper().process.pid)

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(found)) == 1
