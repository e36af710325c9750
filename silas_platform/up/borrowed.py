"""Which servers does a single command speak to when `manage.py up` is not running? The same ones, for its own length.

So `manage.py audit_verify` or `create_tenant` work at any time; beside a running `up` they use its servers.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from silas_platform.up import programs
from silas_platform.up.environment import var_directory
from silas_platform.up.lines import Screen
from silas_platform.up.lock import is_running, only_run
from silas_platform.up.supervisor import Supervisor

# These bring their own servers or ask none.
_OFFLINE = {"up", "prepare", "help", "version", "check", "collectstatic", "diffsettings", "spectacular"}


@contextmanager
def borrowed_servers(env: Mapping[str, str], arguments: Sequence[str]) -> Iterator[None]:
    """Keep the embedded servers up around the command that `arguments` name, if it needs them and nobody runs them."""
    command = next(iter(arguments), "help")
    var = var_directory(env)
    if command in _OFFLINE or command.startswith("-") or "--help" in arguments or is_running(var):
        yield
        return
    supervisor = Supervisor(Screen())
    with only_run(var, supervisor.screen):
        try:
            for server in programs.servers(env):
                supervisor.keep(server)
            yield
        finally:
            supervisor.stop()
