"""What a process does without until it needs it: libraries that are large, and slow to import.

Each is imported by the function that uses it first, so that a command starts quickly and an idle process is small.
"""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.architecture.source import ROOT

LIBRARIES = (
    "ag_ui",  # apps.protocols.agui_run
    "anthropic",
    "email_validator",  # with webpush
    "genai_prices",  # llm.pricing
    "griffe",  # with pydantic_ai
    "httpx",  # with pydantic_ai
    "mcp",  # apps.protocols.mcp_server, apps.safety.mcp_server, apps.toolservers.client
    "mcp_types",
    "numpy",  # llm.embedding
    "openai",
    "pydantic_ai",  # llm
    "pydantic_graph",
    "webpush",  # apps.approvals.cards.webpush
    "wordllama",  # llm.embedding
)
_LOADED = "import sys, django; django.setup(); {more}; print(*(name for name in {names} if name in sys.modules))"


def loaded(names: tuple[str, ...], *, more: str = "pass") -> list[str]:
    """Those of `names` that a process has imported once Django is set up and `more` was done."""
    return output(_LOADED.format(names=names, more=more))


def output(program: str) -> list[str]:
    command = [sys.executable, "-W", "ignore", "-c", program]
    return subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout.split()


@pytest.mark.parametrize(
    "more",
    ["pass", "import silas_platform.celery", "import silas_platform.asgi, silas_platform.urls"],
    ids=["a command", "a worker", "the web process"],
)
def test_start_imports_no_large_library(more: str) -> None:
    assert loaded(LIBRARIES, more=more) == []


def test_imported_library_is_seen() -> None:
    assert loaded(LIBRARIES, more="import llm.attempts, llm.embedding, numpy") != []


def test_supervisor_of_a_run_imports_no_client_of_redis_and_no_application() -> None:
    program = "import sys, silas_platform.up.run; print(*(name for name in {names} if name in sys.modules))"
    assert output(program.format(names=("apps", "celery", "django.apps", "redis"))) == []


CHILD_STARTS = """
import sys
import django
django.setup()
from celery import platforms, signals
from django.db import connection
from silas_platform import celery
signals.worker_before_create_process.send(sender=None)
before = set(sys.modules)
platforms.set_pdeathsig("SIGKILL")
celery._start_telemetry()
connection.pool
print(*set(sys.modules) - before)
"""


def test_child_of_a_worker_imports_nothing_that_its_parent_could_share() -> None:
    assert output(CHILD_STARTS) == []


FIRST_USES = """
import threading
import django
django.setup()
from silas_platform import asgi
from apps.toolservers.loading import load_client
from llm import loading, models, runs
firsts = [
    loading.load,
    runs.new_usage,
    models._grounded_model,
    lambda: models.is_known("openai:gpt-4o-mini") or 1 / 0,
    asgi._mcp_application,
    load_client,
]
begin = threading.Barrier(len(firsts))
def run(first):
    begin.wait()
    first()
for first in firsts:
    threading.Thread(target=run, args=(first,)).start()
"""


def test_threads_may_use_a_library_first_at_the_same_moment() -> None:
    ran = subprocess.run([sys.executable, "-W", "ignore", "-c", FIRST_USES], cwd=ROOT, check=True, capture_output=True)
    assert ran.stderr == b""
