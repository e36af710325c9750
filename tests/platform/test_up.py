"""`manage.py up` with real processes: it comes up, what dies comes back, and every way down leaves nothing behind."""

from __future__ import annotations

import json
import os
import signal
import socket
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest

from silas_platform.up.embedded import postgres_dsns
from silas_platform.up.environment import KEYS, StartRefused
from silas_platform.up.run import is_running, only_run
from silas_platform.up.supervisor import Screen
from tests import prepared
from tests.platform.runs import Run, eventually, remains

pytestmark = pytest.mark.slow

Start = Callable[..., Run]
ASKS_WHO = """
from django.db import connection
with connection.cursor() as cursor:
    cursor.execute("SELECT current_user")
    print(cursor.fetchone())
"""


@pytest.fixture
def used(tmp_path: Path) -> Path:
    """A `var` whose database an earlier run has made."""
    prepared.lay(tmp_path)
    return tmp_path


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    one = Run(tmp_path_factory.mktemp("up"), "--no-demo")
    one.wait_for("ready ")
    yield one
    if one.process.poll() is None:
        one.end()


@pytest.fixture(scope="module")
def again(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    """A run on the `var` and at the port of one that was killed, which had made a table."""
    var = tmp_path_factory.mktemp("again")
    prepared.lay(var)
    killed = Run(var, "--no-demo")
    killed.wait_for("ready ")
    with psycopg.connect(postgres_dsns(var)[0]) as connection:
        connection.execute("CREATE TABLE kept AS SELECT 7 AS number")
    killed.end(signal.SIGKILL)
    one = Run(var, "--no-demo", PORT=str(killed.port))
    yield one
    one.end()


def test_ready_line_names_an_address_that_is_ready_after_console_and_admin(run: Run) -> None:
    url = run.wait_for("ready ").split()[1]
    assert url == f"http://127.0.0.1:{run.port}/"
    with urllib.request.urlopen(f"{url}health/ready") as answer:
        assert json.load(answer)["status"] == "ok"
    said = [line.split()[0] for line in run.lines if line.startswith(("console ", "admin ", "ready "))]
    assert said == ["console", "admin", "ready"]


def test_stranger_sees_styled_pages_and_no_debug_page(run: Run) -> None:
    url = run.wait_for("ready ").split()[1]
    for path in ("static/console/console.css", "static/admin/css/base.css"):
        with urllib.request.urlopen(f"{url}{path}") as answer:
            assert answer.headers["Content-Type"].startswith("text/css")
    with pytest.raises(urllib.error.HTTPError) as missing:
        urllib.request.urlopen(f"{url}no/such/page")
    said = missing.value.read().decode()
    assert missing.value.code == 404
    assert "DEBUG" not in said
    assert "urlpatterns" not in said


def test_address_of_the_first_company_is_printed_while_there_is_none(run: Run) -> None:
    run.wait_for("ready ")
    (said,) = [line.split()[-1] for line in run.lines if line.startswith("set up ")]
    with urllib.request.urlopen(said) as answer:
        assert b"Create your account" in answer.read()


PROGRAMS = ("daphne", "trusted", "worker")


def test_program_is_told_its_own_keys_and_database_only(run: Run) -> None:
    told = {word: _environment(run, word) for word in PROGRAMS}
    for name in ("SILAS_SIGNING_KEY_FILE", "SECRET_KEY_FILE"):
        assert [word for word in PROGRAMS if name in told[word]] == ["daphne", "trusted"]
    assert [word for word in PROGRAMS if "silas_work@" in told[word].get("DATABASE_URL", "")] == ["worker"]
    assert [word for word in PROGRAMS if "DATABASE_OWNER_URL" in told[word]] == []


def test_workers_of_the_run_are_up_and_stay_and_say_nothing_of_who_started_them(run: Run) -> None:
    """As root they would, in the midst of the start."""
    for name in ("worker@", "trusted@"):
        assert eventually(lambda name=name: any(name in line and "ready" in line for line in run.lines))
    assert [line for line in run.lines if "superuser" in line] == []
    assert [line for line in run.lines if "Warning" in line] == []


def test_workers_without_an_address_of_their_own_are_refused(start: Start) -> None:
    said = start("--no-demo", DATABASE_URL="postgresql://somebody@nowhere/x", DATABASE_OWNER_URL="postgresql://o@x/x")
    assert "DATABASE_WORK_URL is not given" in said.whole()


@pytest.mark.parametrize("word", PROGRAMS)
def test_program_killed_comes_back(run: Run, word: str) -> None:
    assert eventually(lambda: run.children(word))
    before = {child.pid for child in run.children(word)}
    for child in run.children(word):
        child.kill()
    assert eventually(lambda: {child.pid for child in run.children(word)} - before)


def test_database_killed_comes_back_and_site_is_ready_again(run: Run) -> None:
    postmaster = (run.var / "postgres" / "data" / "postmaster.pid").read_text().split()[0]
    os.kill(int(postmaster), signal.SIGKILL)
    assert eventually(lambda: any(line.startswith("postgres|") for line in run.lines))
    assert eventually(lambda: _is_ready(run), seconds=40)


def test_run_that_holds_var_is_seen_and_a_second_one_is_refused(run: Run) -> None:
    assert is_running(run.var)
    with pytest.raises(StartRefused, match=str(run.process.pid)), only_run(run.var, Screen(), wait_seconds=0):
        pass


def test_interrupt_during_start_leaves_nothing_behind(start: Start, tmp_path: Path) -> None:
    one = start("--no-demo")
    assert eventually(lambda: (tmp_path / "postgres" / "data" / "postmaster.pid").exists())
    one.end(signal.SIGINT)
    assert remains(tmp_path) == []


def test_run_after_kill_works_keeps_data_and_leaves_nothing_behind_when_stopped(again: Run) -> None:
    again.wait_for("ready ")
    with psycopg.connect(postgres_dsns(again.var)[0]) as connection:
        assert connection.execute("SELECT number FROM kept").fetchone() == (7,)
    assert again.process.poll() is None
    assert again.end(signal.SIGTERM) == 0
    assert remains(again.var) == []


def test_run_under_make_ends_when_make_is_killed(start: Start, used: Path) -> None:
    make = start("--no-demo", under=["sh", "-c"], MAKELEVEL="1")
    make.wait_for("ready ")
    make.end(signal.SIGKILL)
    assert eventually(lambda: not remains(used), seconds=30), remains(used)


def test_command_without_run_brings_its_own_servers(tmp_path: Path) -> None:
    said = Run(tmp_path, command=["shell", "-c", ASKS_WHO]).whole()
    assert "silas_app" in said
    assert remains(tmp_path) == []


def test_command_beside_run_uses_its_servers(run: Run) -> None:
    assert "silas_app" in Run(run.var, command=["shell", "-c", ASKS_WHO]).whole()


def test_open_host_without_keys_is_refused_with_reason_and_starts_nothing(start: Start, tmp_path: Path) -> None:
    one = start(HOST="0.0.0.0")
    said = one.whole()
    assert "SILAS_SIGNING_KEY" in said
    assert "ALLOWED_HOSTS" in said
    assert one.wait() == 1
    assert not (tmp_path / "postgres").exists()


def test_open_host_with_everything_is_served(start: Start, used: Path) -> None:
    keys = {name: f"{name}-that-somebody-chose-with-care" for name in KEYS}
    one = start("--no-demo", "--no-worker", HOST="0.0.0.0", ALLOWED_HOSTS="chat.example.com", **keys)
    assert one.wait_for("ready ") == f"ready http://0.0.0.0:{one.port}/"


@pytest.mark.parametrize(("host", "named"), [("127.0.0.1", "127.0.0.1"), ("0.0.0.0", "127.0.0.1"), ("::1", "::1")])
def test_port_at_which_something_else_answers_is_refused(start: Start, tmp_path: Path, host: str, named: str) -> None:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.create_server((host, 0), family=family) as taken:
        said = start(PORT=str(taken.getsockname()[1])).whole()
    assert f"another program answers on {named}" in said
    assert not (tmp_path / "postgres").exists()


def test_kill_of_supervisor_ends_everything(run: Run) -> None:
    """The last that is asked of this run."""
    assert _is_ready(run)
    run.end(signal.SIGKILL)
    assert eventually(lambda: not remains(run.var), seconds=30), remains(run.var)


def _environment(run: Run, word: str) -> dict[str, str]:
    found = eventually(lambda: run.children(word))
    return dict(found[0].environ())


def _is_ready(run: Run) -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{run.port}/health/ready", timeout=2) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False
