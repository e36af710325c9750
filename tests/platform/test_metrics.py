"""`/metrics`: who may read it, what it counts, and that Debian's Prometheus reads it from a real web process."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest
from django.db import DatabaseError
from django.test import Client
from opentelemetry.sdk.metrics import MeterProvider
from prometheus_client.parser import text_string_to_metric_families

from apps.bus.enums import Queue
from apps.bus.workers import Worker
from kernel.clock import now
from silas_platform import worker_watchdog
from silas_platform.telemetry import collectors, instruments
from silas_platform.up.environment import ROOT, for_program
from tests import nursery
from tests.factories.bus import make_message
from tests.platform.runs import eventually
from tests.ports import free_port
from tests.programs import PROGRAMS, do_without

TOKEN = "a-token-of-prometheus"
RULES, DASHBOARD = ROOT / "deploy" / "prometheus-alerts.yml", ROOT / "deploy" / "grafana-dashboard.json"


@pytest.fixture(scope="module")
def promtool() -> str:
    found = shutil.which("promtool")
    if found is None:
        do_without("needs Debian's prometheus", PROGRAMS)
    return found


@pytest.fixture(scope="module")
def web(migrated: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A web process that answers /metrics."""
    port, log = free_port(), tmp_path_factory.mktemp("web") / "log"
    argv = [sys.executable, "-m", "daphne", "--bind", "127.0.0.1", "--port", str(port), "tests.e2e.web:application"]
    with log.open("wb") as said:
        env = {**for_program(os.environ, "web"), "SILAS_METRICS_TOKEN": TOKEN}
        process = nursery.start(argv, cwd=ROOT, env=env, stdout=said, stderr=said)
        url = f"http://127.0.0.1:{port}"
        try:
            assert eventually(lambda: answers(f"{url}/health/ready")), log.read_text()[-3000:]
            yield url
        finally:
            process.terminate()
            process.wait(30)


def answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=5) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


def read(url: str, token: str = TOKEN) -> str:
    request = urllib.request.Request(f"{url}/metrics", headers={"Authorization": f"Bearer {token}"})
    with urllib.request.urlopen(request, timeout=20) as answer:
        return str(answer.read().decode())


def test_without_the_setting_there_is_no_such_page(database: None, settings: Any) -> None:
    settings.METRICS_TOKEN = ""
    assert Client().get("/metrics", headers={"Authorization": "Bearer "}).status_code == 404


@pytest.mark.parametrize(
    "given", ["", "Bearer ", "Bearer wrong", TOKEN, f"Basic {TOKEN}", f"Bearer {TOKEN} ", "Bearer é"]
)
def test_wrong_token_is_refused(database: None, settings: Any, given: str) -> None:
    settings.METRICS_TOKEN = TOKEN
    answer = Client().get("/metrics", HTTP_AUTHORIZATION=given)
    assert answer.status_code == 401
    assert answer.headers["WWW-Authenticate"] == "Bearer"
    assert answer.content == b""


def test_right_token_reads_and_changes_nothing(database: None, settings: Any) -> None:
    settings.METRICS_TOKEN = TOKEN
    bearer = {"Authorization": f"Bearer {TOKEN}"}
    assert Client().get("/metrics", headers=bearer).status_code == 200
    assert Client().post("/metrics", headers=bearer).status_code == 405


def test_database_counts_over_all_tenants(tenant: Any, other_tenant: Any) -> None:
    before = collectors.read_database()
    for each in (tenant, other_tenant):
        make_message(each, due_at=now() - timedelta(hours=1000))
    after = collectors.read_database()
    assert after["queue_due", "executor"] == before.get(("queue_due", "executor"), 0) + 2
    assert after["queue_oldest_due_seconds", "executor"] >= 3_600_000


def test_labels_of_the_database_are_words_of_the_platform(tenant: Any) -> None:
    make_message(tenant, content="my secret", scope_id="my secret")
    for metric, label in collectors.read_database():
        possible = collectors.DATABASE_GAUGES[metric][0]
        assert label in ([""] if possible is None else [each.value for each in possible[1]])


def test_worker_may_not_count(database: None) -> None:
    with psycopg.connect(os.environ["DATABASE_WORK_URL"]) as line, pytest.raises(psycopg.errors.InsufficientPrivilege):
        line.execute("SELECT * FROM platform_metrics()")


def test_counting_leaves_the_wall_where_it_was(tenant: Any) -> None:
    make_message(tenant)
    with psycopg.connect(os.environ["DATABASE_URL"]) as line:
        line.execute("SELECT count(*) FROM platform_metrics()")
        assert line.execute("SELECT count(*) FROM bus_queuemessage").fetchone() == (0,)


def test_database_that_is_away_is_said_to_be(database: None, monkeypatch: pytest.MonkeyPatch) -> None:
    def away() -> collectors.Values:
        raise DatabaseError("away")

    monkeypatch.setattr(collectors, "read_database", away)
    collectors.cache.delete("metrics")
    families = {family.name: family for family in collectors.DatabaseCollector().collect()}
    assert families["silas_database_up"].samples[0].value == 0
    assert "silas_queue_due" not in families


def test_worker_is_alive_while_it_reports(monkeypatch: pytest.MonkeyPatch) -> None:
    worker_watchdog.report_alive("work-of-this-test")
    assert worker_watchdog.workers_alive("work-of-this-test") == 1
    later = time.time() + worker_watchdog.ALIVE_SECONDS + 1
    monkeypatch.setattr(worker_watchdog.time, "time", lambda: later)
    assert worker_watchdog.workers_alive("work-of-this-test") == 0


def test_without_configuration_no_process_records(settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    settings.METRICS_TOKEN = ""
    for name in instruments._ENDPOINTS:
        monkeypatch.delenv(name, raising=False)
    assert instruments.start("web") is None
    settings.METRICS_TOKEN = TOKEN
    assert instruments.start("worker") is None
    assert not isinstance(instruments.metrics.get_meter_provider(), MeterProvider)


def test_only_web_processes_get_the_token() -> None:
    env = {"SILAS_METRICS_TOKEN": TOKEN, "SILAS_METRICS_TOKEN_FILE": "/token", "DATABASE_WORK_URL": ""}
    assert for_program(env, "web")["SILAS_METRICS_TOKEN"] == TOKEN
    for program in ("trusted", "worker"):
        assert not {"SILAS_METRICS_TOKEN", "SILAS_METRICS_TOKEN_FILE"} & set(for_program(env, program))


def test_real_process_answers_in_the_format_of_prometheus(web: str, promtool: str) -> None:
    text = read(web)
    done = subprocess.run([promtool, "check", "metrics"], input=text, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    with pytest.raises(urllib.error.HTTPError, match="401"):
        read(web, "wrong")
    values = {
        (s.name, tuple(s.labels.values())): s.value for f in text_string_to_metric_families(text) for s in f.samples
    }
    assert values["silas_database_up", ()] == 1
    assert values["silas_redis_up", ()] == 1
    for queue in Queue:
        assert ("silas_queue_due", (queue.value,)) in values
    for worker in Worker:
        assert ("silas_workers", (worker.value,)) in values


_RECORDING = """
import django; django.setup()
from silas_platform.telemetry import instruments
instruments.start("web")
from apps.gates.schemas import GateSpec
from apps.gates.services import check_gates
from apps.sessions.telemetry import TurnOutcome, turn_ended
turn_ended(TurnOutcome.ANSWERED, 0.3)
words = {"blocked_keywords": ["my secret"]}
gate = GateSpec(name="my-secret", on="every_user_message", type="string_match", config=words)
check_gates([gate], "every_user_message", {"message": "this is my secret"})
from prometheus_client import generate_latest
print(generate_latest(instruments.REGISTRY).decode())
"""


def test_instruments_are_shown_under_their_names_and_without_texts(database: None) -> None:
    env = {**os.environ, "SILAS_METRICS_TOKEN": TOKEN}
    done = nursery.run(
        [sys.executable, "-c", _RECORDING], cwd=ROOT, env=env, capture_output=True, text=True, check=True
    )
    assert 'silas_turns_total{outcome="answered"} 1.0' in done.stdout
    assert 'silas_turn_duration_seconds_bucket{le="0.5",outcome="answered"} 1.0' in done.stdout
    assert re.search(
        r'silas_gate_verdicts_total\{action="\w+",lane="policy",trigger="every_user_message"\} 1.0', done.stdout
    )
    assert "secret" not in done.stdout


def test_debians_prometheus_scrapes_it(web: str, promtool: str, tmp_path: Path) -> None:
    prometheus = shutil.which("prometheus")
    assert prometheus is not None
    (tmp_path / "token").write_text(TOKEN)
    config = {
        "global": {"scrape_interval": "1s"},
        "rule_files": [str(RULES)],
        "scrape_configs": [
            {
                "job_name": "silas",
                "authorization": {"credentials_file": str(tmp_path / "token")},
                "static_configs": [{"targets": [web.removeprefix("http://")]}],
            }
        ],
    }
    (tmp_path / "prometheus.yml").write_text(json.dumps(config))
    port = free_port()
    argv = [
        prometheus,
        f"--config.file={tmp_path / 'prometheus.yml'}",
        f"--storage.tsdb.path={tmp_path / 'data'}",
        f"--web.listen-address=127.0.0.1:{port}",
    ]
    with (tmp_path / "log").open("wb") as said:
        process = subprocess.Popen(argv, cwd=tmp_path, stdout=said, stderr=said)
        try:
            found = eventually(lambda: scraped(port, "silas_database_up"))
            assert found == ["1"], (tmp_path / "log").read_text()[-2000:]
            assert len(scraped(port, "silas_queue_due")) == len(Queue)
        finally:
            process.terminate()
            process.wait(30)


def scraped(port: int, query: str) -> list[str]:
    try:
        address = f"http://127.0.0.1:{port}/api/v1/query?{urllib.parse.urlencode({'query': query})}"
        with urllib.request.urlopen(address, timeout=5) as answer:
            return [each["value"][1] for each in json.load(answer)["data"]["result"]]
    except OSError:
        return []


def test_alert_rules_are_sound_and_fire_when_they_should(promtool: str, tmp_path: Path) -> None:
    shutil.copy(RULES, tmp_path / "alerts.yml")
    shutil.copy(Path(__file__).with_name("alerts.test.yml"), tmp_path)
    for words in (["check", "rules", "alerts.yml"], ["test", "rules", "alerts.test.yml"]):
        done = subprocess.run([promtool, *words], cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("path", [RULES, DASHBOARD, ROOT / "docs" / "operations.md"], ids=lambda path: path.name)
def test_named_metrics_exist(web: str, path: Path) -> None:
    """A counter appears with its first event, so the instruments of the source count as well."""
    known = set(re.findall(r"^# TYPE (silas_\w+)", read(web), re.MULTILINE)) | created_by_rooms()
    text = path.read_text()
    named = set(re.findall(r"\bsilas_(?!root_|platform|app\b|work\b|owner\b|client\b|skill\b)\w+", text))
    assert {re.sub(r"_(bucket|count|sum)$", "", name) for name in named} <= known
    assert len(named) >= 8


def created_by_rooms() -> set[str]:
    made = re.compile(r'create_(counter|histogram|gauge)\(\s*"(\w+)"(,\s*unit="s")?')
    ends = {"counter": "_total", "histogram": "_seconds", "gauge": ""}
    sources = [path.read_text() for path in (ROOT / "apps").rglob("*.py") if "migrations" not in path.parts]
    return {f"silas_{name}{ends[kind]}" for text in sources for kind, name, _ in made.findall(text)}
