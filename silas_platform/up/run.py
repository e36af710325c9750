"""Bring the platform up on one machine in its order, and take it down (contract interfaces, `make run`).

One run for one `var`. Leftovers of a killed run end first; `ready` is said only after the web process of this run has
answered that database, Redis and migrations are there. Every way out passes `stop()`. `manage.py up` calls it.
"""

import io
import os
import secrets
import signal
from collections.abc import Callable, Mapping

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.core.management import call_command
from django.core.management.base import SystemCheckError
from django.db import connections

from apps.console.setup_address import setup_path
from apps.tenants.models import Tenant
from silas_platform.certifying import certify_all
from silas_platform.up import processes, programs
from silas_platform.up.address import RUN, Address, free_address, is_ready
from silas_platform.up.demo import demo_logins
from silas_platform.up.environment import (
    StartRefused,
    certify_once,
    open_host_faults,
    var_directory,
    with_embedded_addresses,
    with_keys,
)
from silas_platform.up.lines import Screen
from silas_platform.up.lock import only_run
from silas_platform.up.supervisor import Supervisor
from silas_platform.up.versions import server_faults

# What a killed run left was told to end when it died; its work is leased, so nothing is lost by not waiting long.
LEFTOVER_SECONDS = 2.0


def run(given: Mapping[str, str], *, demo: bool, work: bool, screen: Screen) -> None:
    """Run until a stop is asked for. Raises `StartRefused` when the start would be unsafe or cannot work."""
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
        _listen_to_signals(supervisor)
        try:
            _start_servers(supervisor, env)
            fresh = _prepare()
            for fault in server_faults(database=env["DATABASE_URL"], cache=env["REDIS_URL"]):
                screen.say(f"old server {fault}")
            _certify_once(env, screen)
            demo = demo and settings.DEMO
            logins = demo_logins(env, fresh=fresh, supervisor=supervisor) if demo else []
            _start_programs(supervisor, env, address, work=work)
            supervisor.run_until(lambda: is_ready(address, run=env[RUN], allowed_hosts=settings.ALLOWED_HOSTS))
            if not supervisor.stopping:
                _announce(screen, address, logins, setup=fresh and not demo)
            supervisor.run_until(_parent_is_gone())
        finally:
            supervisor.stop()


def _start_servers(supervisor: Supervisor, env: Mapping[str, str]) -> None:
    for server in programs.servers(env):
        supervisor.keep(server)


def _prepare() -> bool:
    """Bring the schema up to date as its owner, then check the start; returns whether the database is still empty."""
    try:
        call_command("check", tags=["database"], databases=["owner"], stdout=io.StringIO())
        call_command("migrate", database="owner", verbosity=0, interactive=False, skip_checks=True)
        call_command("check", databases=["default"], stdout=io.StringIO())
    except (SystemCheckError, ImproperlyConfigured) as fault:
        raise StartRefused(str(fault)) from None
    if not getattr(settings, "WHITENOISE_USE_FINDERS", False):
        call_command("collectstatic", verbosity=0, interactive=False)
    fresh = not Tenant.objects.exists()
    connections.close_all()
    return fresh


def _certify_once(env: Mapping[str, str], screen: Screen) -> None:
    """At the first start with an installation key, what an older version left behind is certified as it stands."""
    mark = certify_once(env)
    if not mark.exists():
        return
    for done in certify_all(actor="command:up"):
        if done.counts:
            told = " ".join(f"{kind}={number}" for kind, number in done.counts.items())
            screen.say(f"certified tenant={done.tenant} {told} (first start with an installation key)")
    connections.close_all()
    mark.unlink()


def _start_programs(supervisor: Supervisor, env: Mapping[str, str], address: Address, *, work: bool) -> None:
    if supervisor.stopping:
        return
    supervisor.keep(programs.web(env, host=address.host, port=address.port))
    if work:
        supervisor.keep(programs.trusted(env))
        supervisor.keep(programs.worker(env))
        supervisor.keep(programs.beat(env))


def _announce(screen: Screen, address: Address, logins: list[str], *, setup: bool) -> None:
    if logins:
        screen.say(f"demo site  {address.url}/demo/meridian-insurance/")
        screen.say(f"demo site  {address.url}/demo/harbor-retail/")
    screen.say(f"console    {address.url}/console/")
    screen.say(f"admin      {address.url}/admin/")
    for line in logins:
        screen.say(line)
    if setup:
        screen.say(f"set up     {address.url}{setup_path()}")
    screen.say(f"ready {address.url}/")


def _listen_to_signals(supervisor: Supervisor) -> None:
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:  # what nohup ignores stays ignored
            signal.signal(number, lambda *_: supervisor.ask_to_stop())


def _parent_is_gone() -> Callable[[], bool]:
    """Under `make`, whose death no signal tells us, a run ends with its parent; elsewhere it stays."""
    parent = os.getppid()
    return lambda: "MAKELEVEL" in os.environ and os.getppid() != parent
