"""The programs that make up the platform on one machine (architecture, Processes).

Servers first: PostgreSQL and Redis where nobody gave an address. Then web, the trusted worker, the worker for
everything else and beat, each with its own part of the environment. `manage.py up` starts them in this order.
"""

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from signal import SIGINT

from silas_platform.up import embedded, processes
from silas_platform.up.environment import ROOT, embedded_database, embedded_redis, for_program, var_directory
from silas_platform.up.supervisor import Program

# Every process of a run carries it, so that the next run finds what a killed one left behind.
MARK = "SILAS_UP"
_CELERY = ("-m", "celery", "-A", "silas_platform", "--quiet")
# Whoever tries this out as root on a machine of their own is not told in the midst of a start what is for servers.
AS_ROOT = ("-W", "ignore:You're running the worker with superuser privileges")


# One machine: nothing to gossip with, and each handshake costs a second of the start.
_ALONE = ("--loglevel=INFO", "--without-gossip", "--without-mingle")


def servers(env: Mapping[str, str]) -> list[Program]:
    """The embedded servers that `env` asks for."""
    var = var_directory(env)
    wanted = []
    if embedded_database(env):
        wanted.append(Program("postgres", lambda: embedded.start_postgres(var).process, first=SIGINT, server=True))
    if embedded_redis(env):
        wanted.append(Program("redis", lambda: embedded.start_redis(var).process, server=True))
    return wanted


def web(env: Mapping[str, str], *, host: str, port: int) -> Program:
    bind = ["--bind", host, "--port", str(port), "--application-close-timeout", "10"]
    return _python("web", env, ["-m", "daphne", "--verbosity", "1", *bind, "silas_platform.asgi:application"])


def trusted(env: Mapping[str, str]) -> Program:
    """The worker that holds the signing key. It waits for databases and servers, so threads do, and it forks nobody."""
    size = ["--pool", "threads", "--concurrency", "4"]
    return _python("trusted", env, [*AS_ROOT, *_CELERY, "worker", "-Q", "trusted", "-n", "trusted@%h", *_ALONE, *size])


def worker(env: Mapping[str, str]) -> Program:
    size = ["--concurrency", str(min(4, os.cpu_count() or 1))]
    return _python("worker", env, [*AS_ROOT, *_CELERY, "worker", *_ALONE, *size])


def beat(env: Mapping[str, str]) -> Program:
    command = ["-m", "celery", "-A", "silas_platform.beat", "--quiet", "beat", "--loglevel=WARNING", "--pidfile="]
    return _python("beat", env, command)


def marked_env(env: Mapping[str, str]) -> dict[str, str]:
    return {**env, MARK: str(var_directory(env)), "PYTHONUNBUFFERED": "1"}


def _python(name: str, env: Mapping[str, str], arguments: Sequence[str]) -> Program:
    told = marked_env(for_program(env, name))

    def start() -> subprocess.Popen[bytes]:
        return processes.spawn([sys.executable, *arguments], env=told, cwd=ROOT, output=subprocess.PIPE)

    return Program(name, start)
