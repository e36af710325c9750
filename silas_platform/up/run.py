"""Start the platform on one machine in order, and stop it (contract interfaces, `make run`).

One run for each `var`. Leftovers of a killed run are ended first; `ready` is printed only after this run's web process
has answered that database, Redis and migrations are ready. Every exit passes `stop()`. `manage.py up` calls `main`
without loading Django; every other command runs inside `borrowed_servers`.
"""

import fcntl
import os
import secrets
import signal
import sys
import time
from argparse import ArgumentParser
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from silas_platform.up import processes, programs
from silas_platform.up.address import RUN, Address, free_address, is_ready
from silas_platform.up.environment import (
    StartRefused,
    open_host_faults,
    var_directory,
    with_embedded_addresses,
    with_keys,
)
from silas_platform.up.preparation import demo_logins, prepare
from silas_platform.up.supervisor import CALM_TICK_SECONDS, Screen, Supervisor

# Leftovers were signalled when their run died; their work is leased, so a short wait loses nothing.
LEFTOVER_SECONDS = 2.0
HELP = "Start PostgreSQL and Redis unless addresses are given, migrate, run web and workers until Ctrl-C."
# Commands that start their own servers or need none.
_OFFLINE = {"up", "prepare", "help", "version", "check", "collectstatic", "diffsettings", "spectacular"}


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--no-demo", action="store_true", help="leave an empty database empty")
    parser.add_argument("--no-worker", action="store_true", help="web only: no worker")


def main(arguments: Sequence[str]) -> None:
    """Run the platform until a stop is asked for. Exits with a message when the start is refused."""
    parser = ArgumentParser(prog="manage.py up", description=HELP)
    add_arguments(parser)
    options = parser.parse_args(arguments)
    start(demo=not options.no_demo, work=not options.no_worker)


def start(*, demo: bool, work: bool) -> None:
    """Run until a stop is asked for. `demo` fills an empty database; without `work` only the web process runs."""
    screen = Screen()
    try:
        run(os.environ, demo=demo, work=work, screen=screen)
    except StartRefused as refused:
        sys.exit(f"CommandError: {refused}")
    if screen.closed:
        os._exit(0)  # Python would end by writing to the pipe that is no longer read


def run(given: Mapping[str, str], *, demo: bool, work: bool, screen: Screen) -> None:
    """Run until stopped. Raises `StartRefused` when the start would be unsafe or cannot work."""
    if faults := open_host_faults(given):
        raise StartRefused("\n".join(faults))
    env = with_keys(with_embedded_addresses(given))
    if work and not env.get("DATABASE_WORK_URL"):
        raise StartRefused("DATABASE_WORK_URL is not given: workers speak as the role silas_work (docs/operations.md)")
    with only_run(var_directory(env), screen):
        processes.end(processes.marked(programs.MARK, str(var_directory(env))), grace=LEFTOVER_SECONDS)
        address = free_address(env)
        env[RUN] = secrets.token_hex(8)
        supervisor, parent = Supervisor(screen), os.getppid()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            if signal.getsignal(number) is not signal.SIG_IGN:  # what nohup ignores stays ignored
                signal.signal(number, lambda *_: supervisor.ask_to_stop())
        try:
            for server in programs.servers(env):
                supervisor.supervise(server)
            prepared = prepare(env, supervisor)
            if prepared is None:
                return
            demo = demo and prepared.demo
            logins = demo_logins(env, fresh=prepared.is_empty, supervisor=supervisor) if demo else []
            if supervisor.stopping:
                return
            supervisor.supervise(programs.web(env, host=address.host, port=address.port))
            for program in (programs.trusted, programs.worker) if work else ():
                supervisor.supervise(program(env))
            supervisor.run_until(lambda: is_ready(address, run=env[RUN], allowed_hosts=prepared.allowed_hosts))
            if not supervisor.stopping:
                _announce(screen, address, logins, setup_path="" if demo else prepared.setup_path)
            # Under `make`, whose death sends no signal, a run ends with its parent.
            supervisor.run_until(lambda: "MAKELEVEL" in os.environ and os.getppid() != parent, tick=CALM_TICK_SECONDS)
        finally:
            supervisor.stop()


def _announce(screen: Screen, address: Address, logins: list[str], *, setup_path: str) -> None:
    if logins:
        screen.say(f"demo site  {address.url}/demo/meridian-insurance/")
        screen.say(f"demo site  {address.url}/demo/harbor-retail/")
    screen.say(f"console    {address.url}/console/")
    screen.say(f"admin      {address.url}/admin/")
    for line in logins:
        screen.say(line)
    if setup_path:
        screen.say(f"set up     {address.url}{setup_path}")
    screen.say(f"ready {address.url}/")


@contextmanager
def borrowed_servers(env: Mapping[str, str], arguments: Sequence[str]) -> Iterator[None]:
    """Run the embedded servers around the command in `arguments`, if it needs them and no `manage.py up` runs them."""
    command = next(iter(arguments), "help")
    var = var_directory(env)
    if command in _OFFLINE or command.startswith("-") or "--help" in arguments or is_running(var):
        yield
        return
    supervisor = Supervisor(Screen())
    with only_run(var, supervisor.screen):
        try:
            for server in programs.servers(env):
                supervisor.supervise(server)
            yield
        finally:
            supervisor.stop()


@contextmanager
def only_run(var: Path, screen: Screen, *, wait_seconds: float = 10.0) -> Iterator[None]:
    """Hold `var/up.lock`, which the system releases when the process dies.

    Waits `wait_seconds` for a run that is ending; raises `StartRefused` beside another.
    """
    var.mkdir(mode=0o700, parents=True, exist_ok=True)
    with (var / "up.lock").open("a+") as lock:
        if not _acquire(lock):
            screen.say(f"another run ({_holder(lock)}) uses {var}; waiting for it to end")
            deadline = time.monotonic() + wait_seconds
            while not _acquire(lock):
                if time.monotonic() > deadline:
                    raise StartRefused(f"another run ({_holder(lock)}) uses {var}; stop it first, or set SILAS_VAR")
                time.sleep(0.1)
        lock.truncate(0)
        lock.write(str(os.getpid()))
        lock.flush()
        yield


def is_running(var: Path) -> bool:
    """Return whether a run holds `var` now."""
    try:
        with (var / "up.lock").open("a+") as lock:
            return not _acquire(lock)
    except FileNotFoundError:
        return False


def _acquire(lock: IO[str]) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _holder(lock: IO[str]) -> str:
    lock.seek(0)
    return f"process {lock.read() or 'unknown'}"
