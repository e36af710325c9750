"""Start the platform on one machine in order, and stop it (contract interfaces, `make run`).

One run for each `var`. Leftovers of a killed run are ended first; `ready` is printed only after this run's web process
has answered that database, Redis and migrations are ready. Every exit passes `stop()`. Called by `manage.py up`.
"""

import os
import secrets
import signal
from collections.abc import Callable, Mapping

from silas_platform.up import processes, programs
from silas_platform.up.address import RUN, Address, free_address, is_ready
from silas_platform.up.demo import demo_logins
from silas_platform.up.environment import (
    StartRefused,
    open_host_faults,
    var_directory,
    with_embedded_addresses,
    with_keys,
)
from silas_platform.up.lines import Screen
from silas_platform.up.lock import only_run
from silas_platform.up.preparation import prepare
from silas_platform.up.supervisor import Supervisor
from silas_platform.up.versions import server_faults

# Leftovers were signalled when their run died; their work is leased, so a short wait loses nothing.
LEFTOVER_SECONDS = 2.0


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
        supervisor = Supervisor(screen)
        _install_signal_handlers(supervisor)
        try:
            _start_servers(supervisor, env)
            prepared = prepare(env, supervisor)
            if prepared is None:
                return
            for fault in server_faults(database=env["DATABASE_URL"], cache=env["REDIS_URL"]):
                screen.say(f"old server {fault}")
            demo = demo and prepared.demo
            logins = demo_logins(env, fresh=prepared.is_empty, supervisor=supervisor) if demo else []
            _start_programs(supervisor, env, address, work=work)
            supervisor.run_until(lambda: is_ready(address, run=env[RUN], allowed_hosts=prepared.allowed_hosts))
            if not supervisor.stopping:
                _announce(screen, address, logins, setup_path="" if demo else prepared.setup_path)
            supervisor.run_until(_parent_is_gone())
        finally:
            supervisor.stop()


def _start_servers(supervisor: Supervisor, env: Mapping[str, str]) -> None:
    for server in programs.servers(env):
        supervisor.supervise(server)


def _start_programs(supervisor: Supervisor, env: Mapping[str, str], address: Address, *, work: bool) -> None:
    if supervisor.stopping:
        return
    supervisor.supervise(programs.web(env, host=address.host, port=address.port))
    if work:
        supervisor.supervise(programs.trusted(env))
        supervisor.supervise(programs.worker(env))
        supervisor.supervise(programs.beat(env))


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


def _install_signal_handlers(supervisor: Supervisor) -> None:
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:  # what nohup ignores stays ignored
            signal.signal(number, lambda *_: supervisor.ask_to_stop())


def _parent_is_gone() -> Callable[[], bool]:
    """Under `make`, whose death sends no signal, a run ends with its parent; otherwise it keeps running."""
    parent = os.getppid()
    return lambda: "MAKELEVEL" in os.environ and os.getppid() != parent
