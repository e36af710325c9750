"""Environment of the conversation benchmarks: its own PostgreSQL and Redis, one web process, one deployment.

fsync is on, as in production: a commit costs what it costs, for the platform and for the baseline alike.
"""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

from kernel.trust import root_of
from silas_platform.up.embedded import start_postgres, start_redis

READY_SECONDS = 60
STOCK_PATH, TUNED_PATH = "/ws/bare/", "/ws/tuned/"
_ECHO_TABLE = "CREATE TABLE bench_echo (id bigserial PRIMARY KEY, said text NOT NULL, at timestamptz DEFAULT now())"


@dataclass
class Stage:
    """`url` is the address of the web process `process`; `env` what a process needs to reach the same servers."""

    url: str
    env: dict[str, str]
    deployment: Any = None
    process: subprocess.Popen[bytes] | None = None

    @property
    def socket_url(self) -> str:
        return self.url.replace("http", "ws", 1)

    def new_session(self) -> tuple[str, str]:
        """(token, session id) of a new visitor."""
        from apps.sessions.services import start_session

        started = start_session(self.deployment)
        return started.token, str(started.session_id)


@contextlib.contextmanager
def stage(
    extra_env: dict[str, str] | None = None, model: str = "builtin:grounded", *, files: bool = False
) -> Iterator[Stage]:
    """`files`: whether the pages' static files are served too."""
    with servers(extra_env) as env, contextlib.ExitStack() as stack:
        if files:
            _collect_files()
        with _echo_table() as cursor:
            cursor.execute(_ECHO_TABLE)
        url, process = start_web(env, stack)
        yield Stage(url, env, deployment(model), process)


@contextlib.contextmanager
def servers(
    extra_env: dict[str, str] | None = None, lay: Callable[[Path], None] | None = None
) -> Iterator[dict[str, str]]:
    """PostgreSQL and Redis of this process's own, migrated, with Django set up; what others need to reach them. `lay`
    may put a cluster where the servers keep theirs, before they start."""
    with tempfile.TemporaryDirectory(prefix="silas-bench-") as var, contextlib.ExitStack() as stack:
        if lay:
            lay(Path(var))
        postgres, redis = start_postgres(Path(var)), start_redis(Path(var), persist=False)
        stack.callback(postgres.stop)
        stack.callback(redis.stop)
        env = {
            "SILAS_VAR": var,
            "DATABASE_URL": postgres.dsn_app,
            "DATABASE_OWNER_URL": postgres.dsn_owner,
            "DATABASE_WORK_URL": postgres.dsn_work,
            "SILAS_TEST_SUPERUSER_DSN": postgres.superuser_dsn,
            "REDIS_URL": redis.url,
            "SECRET_KEY": "bench-secret-key-that-is-long-enough",
            "SILAS_SIGNING_KEY": "bench-signing-key",
            "SILAS_ROOT_KEYS": root_of("bench-signing-key"),
            "SILAS_SECRETS_KEY": "bench-secrets-key",
            "ALLOWED_HOSTS": "127.0.0.1",
            "VISITOR_BURST": "1000000",
            "SILAS_SOCKET_FRAMES": "1000000",
            "SILAS_SOCKET_HANDSHAKES": "1000000",
            "SILAS_MESSAGES_A_MINUTE": "1000000",
            "SILAS_TENANT_MESSAGES_A_MINUTE": "1000000",
            "SILAS_TENANT_PENDING_TURNS": "1000000",
            "SILAS_MODEL_RUNS_A_MINUTE": "1000000",
            "SILAS_TENANT_MODEL_RUNS_A_MINUTE": "1000000",
            "DJANGO_SETTINGS_MODULE": "silas_platform.settings.prod",
            **(extra_env or {}),
        }
        os.environ.update(env)
        _set_up()
        yield env


def _set_up() -> None:
    import django
    from django.conf import settings
    from django.core.management import call_command

    django.setup()
    settings.BUNDLED_SKILLS_CHECKED = False  # benchmarks install folders of their own
    call_command("migrate", database="owner", verbosity=0)


def _collect_files() -> None:
    from django.core.management import call_command

    call_command("collectstatic", verbosity=0, interactive=False)


def _echo_table() -> Any:
    from django.db import connections

    return connections["owner"].cursor()


def deployment(model: str) -> Any:
    from apps.tenants.models import Deployment, Tenant
    from kernel.tenancy import tenant_scope

    tenant = Tenant.objects.create(slug=f"bench-{uuid4().hex[:8]}", name="Bench")
    names = {"proxy": model, "planner": model, "executor": model}
    key = f"bench-{uuid4().hex[:8]}"
    with tenant_scope(tenant):
        return Deployment.objects.create(
            tenant=tenant, slug="bench", title="Bench", public_key=key, model_names=names, environment_keys=True
        )


def start_web(env: dict[str, str], stack: contextlib.ExitStack) -> tuple[str, subprocess.Popen[bytes]]:
    """Start a web process and wait until it answers; it ends with `stack`."""
    port = _free_port()
    argv = [sys.executable, "-m", "daphne", "-b", "127.0.0.1", "-p", str(port), "-v", "0", "bench.web:application"]
    process = subprocess.Popen(argv, env={**os.environ, **env}, stderr=(Path(env["SILAS_VAR"]) / "web.log").open("wb"))
    stack.callback(process.wait)
    stack.callback(process.terminate)
    url = f"http://127.0.0.1:{port}"
    give_up = time.monotonic() + READY_SECONDS
    while time.monotonic() < give_up and process.poll() is None:
        with contextlib.suppress(OSError), urllib.request.urlopen(f"{url}/health/ready", timeout=5) as answer:
            if answer.status == 200:
                return url, process
        time.sleep(0.1)
    said = (Path(env["SILAS_VAR"]) / "web.log").read_text(errors="replace")[-2000:]
    raise RuntimeError(f"the web process did not become ready:\n{said}")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
