"""Embedded servers for a single management command while `manage.py up` is not running.

So `manage.py audit_verify` or `create_tenant` work at any time; beside a running `up` they use its servers.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from silas_platform.up import programs
from silas_platform.up.environment import var_directory
from silas_platform.up.lines import Screen
from silas_platform.up.lock import is_running, only_run
from silas_platform.up.supervisor import Supervisor

# Commands that start their own servers or need none.
_OFFLINE = {"up", "prepare", "help", "version", "check", "collectstatic", "diffsettings", "spectacular"}


@contextmanager
def borrowed_servers(env: Mapping[str, str], arguments: Sequence[str]) -> Iterator[None]:
    """Run the embedded servers around the command in `arguments`, if it needs them and they are not running."""
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
