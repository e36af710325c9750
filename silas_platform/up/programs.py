"""The programs that make up the platform on one machine (architecture, Processes).

Servers first: PostgreSQL and Redis, unless addresses were given. Then web, the trusted worker, which is beat too, and
the worker for everything else, each with its own part of the environment. `manage.py up` starts them in this order.
"""

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from signal import SIGINT

from silas_platform.up import embedded, processes
from silas_platform.up.environment import ROOT, embedded_database, embedded_redis, for_program, var_directory
from silas_platform.up.supervisor import Program

# Set in every process of a run, so that the next run finds what a killed one left behind.
MARK = "SILAS_UP"
# Hide Celery's warning about root, which is meant for servers.
AS_ROOT = ("-W", "ignore:You're running the worker with superuser privileges")


def servers(env: Mapping[str, str]) -> list[Program]:
    """The embedded servers that `env` requires."""
    var = var_directory(env)
    programs = []
    if embedded_database(env):
        programs.append(Program("postgres", lambda: embedded.start_postgres(var).process, first=SIGINT, server=True))
    if embedded_redis(env):
        programs.append(Program("redis", lambda: embedded.start_redis(var).process, server=True))
    return programs


def web(env: Mapping[str, str], *, host: str, port: int) -> Program:
    bind = ["--bind", host, "--port", str(port), "--application-close-timeout", "10"]
    return _python("web", env, ["-m", "daphne", "--verbosity", "1", *bind, "silas_platform.asgi:application"])


def trusted(env: Mapping[str, str]) -> Program:
    """The worker that holds the signing key. It mostly waits for databases and servers, so it uses threads. One of them
    is beat, which would take 35 MB as a process of its own."""
    return _worker("trusted", env, ["--queues", "trusted", "--threads", "4", "--beat"])


def worker(env: Mapping[str, str]) -> Program:
    return _worker("worker", env, ["--processes", str(min(4, os.cpu_count() or 1))])


def _worker(name: str, env: Mapping[str, str], options: Sequence[str]) -> Program:
    # The checks passed a moment ago (`manage.py prepare`); in a worker they would import every page: 20 MB.
    unchecked = {**env, "CELERY_SKIP_CHECKS": "1"}
    return _python(name, unchecked, [*AS_ROOT, "-m", "silas_platform.worker", name, *options])


def marked_env(env: Mapping[str, str]) -> dict[str, str]:
    return {**env, MARK: str(var_directory(env)), "PYTHONUNBUFFERED": "1"}


def _python(name: str, env: Mapping[str, str], arguments: Sequence[str]) -> Program:
    child_env = marked_env(for_program(env, name))

    def start() -> subprocess.Popen[bytes]:
        return processes.spawn([sys.executable, *arguments], env=child_env, cwd=ROOT, output=subprocess.PIPE)

    return Program(name, start)
