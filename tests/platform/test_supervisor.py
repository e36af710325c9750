"""What dies comes back, what is asked to stop ends, and nothing of either stays behind."""

from __future__ import annotations

import io
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator

import psutil
import pytest

from silas_platform.up import processes
from silas_platform.up.supervisor import LineBuffer, Program, Screen, Supervisor
from tests.platform.runs import eventually, python

WAITS = "import time; time.sleep(60)"
PARENT = f"import subprocess, sys; subprocess.Popen([sys.executable, '-c', {WAITS!r}]); {WAITS}"
DEAF = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('deaf', flush=True); time.sleep(60)"


SAYS_GOODBYE = """
import signal, sys, time
signal.signal(signal.SIGTERM, lambda *_: (time.sleep({pause}), print("{name} ended"), sys.exit()))
print("set", flush=True)
time.sleep(60)
"""


class Window(io.StringIO):
    """A terminal that somebody has closed."""

    def write(self, text: str) -> int:
        raise BrokenPipeError


class Started:
    """Programs that remember every process they started."""

    def __init__(self) -> None:
        self.processes: list[subprocess.Popen[bytes]] = []

    def program(self, code: str, *, name: str = "toy", server: bool = False) -> Program:
        def start() -> subprocess.Popen[bytes]:
            self.processes.append(processes.spawn(python(code), output=subprocess.PIPE))
            return self.processes[-1]

        return Program(name, start, server=server)


@pytest.fixture
def screen() -> Screen:
    return Screen(out=io.StringIO())


@pytest.fixture
def supervisor(screen: Screen) -> Iterator[Supervisor]:
    one = Supervisor(screen, grace=5)
    yield one
    one.stop()


@pytest.fixture
def started() -> Started:
    return Started()


def output_of(screen: Screen) -> str:
    assert isinstance(screen.out, io.StringIO)
    return screen.out.getvalue()


def within(seconds: float, done: Callable[[], object]) -> Callable[[], bool]:
    give_up = time.monotonic() + seconds
    return lambda: bool(done()) or time.monotonic() > give_up


def test_program_killed_is_started_again(supervisor: Supervisor, started: Started) -> None:
    supervisor.supervise(started.program(WAITS))
    os.kill(started.processes[0].pid, signal.SIGKILL)
    supervisor.run_until(within(5, lambda: len(started.processes) == 2))
    assert len(started.processes) == 2


def test_program_that_keeps_failing_waits_longer_each_time(supervisor: Supervisor, started: Started) -> None:
    supervisor.supervise(started.program("raise SystemExit(3)"))
    supervisor.run_until(within(2.5, lambda: False))
    assert len(started.processes) in (2, 3)
    assert "ended with 3; starting again in 1 s" in output_of(supervisor.screen)


def test_program_killed_takes_its_children_along(supervisor: Supervisor, started: Started) -> None:
    supervisor.supervise(started.program(PARENT))
    parent = psutil.Process(started.processes[0].pid)
    assert eventually(parent.children)
    child = parent.children()[0]
    parent.kill()
    supervisor.run_until(within(5, lambda: len(started.processes) == 2))
    assert eventually(lambda: not processes.is_alive(child))


def test_output_carries_name_of_program_also_last_words_without_line_end(
    supervisor: Supervisor, started: Started
) -> None:
    supervisor.supervise(started.program("import sys; sys.stdout.write('hello\\nlast words')", name="web"))
    supervisor.run_until(within(5, lambda: "last words" in output_of(supervisor.screen)))
    assert "web     | hello" in output_of(supervisor.screen)
    assert "web     | last words" in output_of(supervisor.screen)


def test_stop_ends_program_that_ignores_it(screen: Screen, started: Started) -> None:
    impatient = Supervisor(screen, grace=0.3)
    impatient.supervise(started.program(DEAF))
    impatient.run_until(within(5, lambda: "deaf" in output_of(screen)))
    impatient.stop()
    assert started.processes[0].returncode == -signal.SIGKILL


def test_stop_asks_politely_first(supervisor: Supervisor, started: Started) -> None:
    supervisor.supervise(started.program(SAYS_GOODBYE.format(pause=0, name="it")))
    supervisor.run_until(within(5, lambda: "set" in output_of(supervisor.screen)))
    supervisor.stop()
    assert started.processes[0].returncode == 0
    assert "it ended" in output_of(supervisor.screen)


def test_second_request_to_stop_does_not_wait(screen: Screen, started: Started) -> None:
    patient = Supervisor(screen, grace=60)
    patient.supervise(started.program(DEAF))
    patient.run_until(within(5, lambda: "deaf" in output_of(screen)))
    patient.ask_to_stop()
    patient.ask_to_stop()
    begun = time.monotonic()
    patient.stop()
    assert time.monotonic() - begun < 5


def test_servers_outlive_programs(screen: Screen, started: Started) -> None:
    ordered = Supervisor(screen, grace=5)
    ordered.supervise(started.program(SAYS_GOODBYE.format(pause=0, name="server"), server=True))
    ordered.supervise(started.program(SAYS_GOODBYE.format(pause=0.5, name="program")))
    ordered.run_until(within(5, lambda: output_of(screen).count("set") == 2))
    ordered.stop()
    assert output_of(screen).index("program ended") < output_of(screen).index("server ended")


def test_start_that_fails_again_is_tried_again(supervisor: Supervisor, started: Started) -> None:
    good = started.program(WAITS)
    attempts: list[int] = []

    def start() -> subprocess.Popen[bytes]:
        attempts.append(1)
        if len(attempts) == 2:
            raise RuntimeError("no room")
        return good.start()

    supervisor.supervise(Program("toy", start))
    started.processes[0].kill()
    supervisor.run_until(within(8, lambda: len(started.processes) == 2))
    assert len(started.processes) == 2


def test_closed_screen_ends_run(started: Started) -> None:
    supervisor = Supervisor(Screen(out=Window()))
    supervisor.supervise(started.program("print('into the void', flush=True); " + WAITS))
    supervisor.run_until(within(5, lambda: False))
    supervisor.stop()
    assert started.processes[0].returncode is not None
    assert supervisor.screen.closed


def test_pieces_of_line_are_joined() -> None:
    buffer = LineBuffer()
    assert [*buffer.feed(b"he"), *buffer.feed(b"llo\nwor"), *buffer.finish()] == ["hello", "wor"]
