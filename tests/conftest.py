"""The tests' own PostgreSQL (a migrated one's copy) and Redis, and the cast: owner, approver, agent, viewer, stranger.

Database access commits, as in production; tests keep apart by making their own tenants. What is costly is made once:
the migrated cluster (tests/prepared.py), the house of tests/faults, web, worker and browser of tests/e2e.
"""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import django
import pytest
from hypothesis import HealthCheck, settings

from silas_platform.up.embedded import PostgresServer, RedisServer, start_postgres, start_redis
from tests import prepared
from tests.factories.pooler import Pooler, start_pooler
from tests.leftovers import sweep

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # A shell that runs the tests in the background ignores Ctrl-C for them and for every process they start.
    signal.signal(signal.SIGINT, signal.default_int_handler)

# A machine that runs more than these tests is slow, not wrong.
settings.register_profile("patient", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("patient")

_services: list[PostgresServer | RedisServer | Pooler] = []
_var: list[Path] = []


def _start_services() -> None:
    """Start the embedded servers before Django reads its settings; `SILAS_VAR` points every test process at them."""
    if _services:
        return
    sweep(Path(tempfile.gettempdir()))
    var = Path(tempfile.mkdtemp(prefix="silas-tests-"))
    _var.append(var)
    prepared.lay(var)
    postgres = start_postgres(var, fsync=False)
    redis = start_redis(var, persist=False, watched=True)
    _services.extend([postgres, redis])
    os.environ.update(
        SILAS_VAR=str(var),
        DATABASE_URL=postgres.dsn_app,
        DATABASE_OWNER_URL=postgres.dsn_owner,
        DATABASE_WORK_URL=postgres.dsn_work,
        REDIS_URL=redis.url,
    )
    os.environ["SILAS_TEST_SUPERUSER_DSN"] = postgres.superuser_dsn
    if os.environ.get("SILAS_TEST_POOLER") == "1":
        pooler = start_pooler(postgres.superuser_dsn)
        _services.insert(0, pooler)
        os.environ.update(pooler.addresses())
    os.environ["DJANGO_SETTINGS_MODULE"] = "silas_platform.settings.test"
    django.setup()


_start_services()


def pytest_unconfigure(config: pytest.Config) -> None:
    for service in _services:
        service.stop()
    for var in _var:
        shutil.rmtree(var, ignore_errors=True)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """A failure says how busy the machine was: what fails there alone is looked for elsewhere than in the code."""
    report = yield
    if report.failed:
        available = next(line for line in Path("/proc/meminfo").read_text().splitlines() if "MemAvailable" in line)
        load = Path("/proc/loadavg").read_text().strip()
        report.sections.append(("machine", f"load averages, runnable/all threads, last process: {load}; {available}"))
    return report


@pytest.fixture(scope="session")
def migrated() -> None:
    """The whole schema, made by the owner's role as in production: it came with the copy (tests/prepared.py)."""


@pytest.fixture
def database(migrated: None, django_db_blocker: Any) -> Iterator[None]:
    """Real, committing access in the application's role."""
    from django.db import connections

    with django_db_blocker.unblock():
        yield
        connections.close_all()


@pytest.fixture(scope="session")
def superuser_dsn() -> str:
    """For tests that go around every wall, as a hostile administrator of the database would."""
    return os.environ["SILAS_TEST_SUPERUSER_DSN"]


@pytest.fixture
def tenant(database: None) -> Any:
    from tests.factories.tenants import make_tenant

    return make_tenant()


@pytest.fixture
def other_tenant(database: None) -> Any:
    from tests.factories.tenants import make_tenant

    return make_tenant()


@pytest.fixture
def provider(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """`provider(*replies)`: a local server that acts as a model provider, for the test and for its subprocesses."""
    from pydantic_ai import models

    from tests.fakes.openai_server import FakeOpenAI, serving_in_thread

    @contextmanager
    def serving(*replies: Any) -> Iterator[FakeOpenAI]:
        told = replies[0] if callable(replies[0]) else list(replies)
        with serving_in_thread(told) as fake:
            monkeypatch.setenv("OPENAI_BASE_URL", fake.base_url)
            monkeypatch.setenv("OPENAI_API_KEY", "sk-of-the-house")
            monkeypatch.setattr(models, "ALLOW_MODEL_REQUESTS", True)
            yield fake

    return serving


@pytest.fixture
def owner(tenant: Any) -> Any:
    from tests.factories.tenants import make_member

    return make_member(tenant, "owner")


@pytest.fixture
def approver(tenant: Any) -> Any:
    from tests.factories.tenants import make_member

    return make_member(tenant, "approver")


@pytest.fixture
def agent(tenant: Any) -> Any:
    from tests.factories.tenants import make_member

    return make_member(tenant, "agent")


@pytest.fixture
def viewer(tenant: Any) -> Any:
    from tests.factories.tenants import make_member

    return make_member(tenant, "viewer")


@pytest.fixture
def stranger(database: None) -> Any:
    from tests.factories.tenants import make_user

    return make_user()


@pytest.fixture
def deployment(tenant: Any) -> Any:
    from tests.factories.tenants import make_deployment

    return make_deployment(tenant)
