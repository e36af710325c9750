"""The dry run of gates that ask: scripts run on what is recorded, models are asked where somebody pays for it."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai.models import override_allow_model_requests

from apps.gates.backtest import runs
from apps.gates.backtest.runs import BacktestReport, backtest_version
from apps.gates.schemas import GateSpec
from apps.gates.services import save_gate, write_version
from apps.guard.models import GuardedRun, ToolCall
from kernel.tenancy import tenant_scope
from tests.factories.identity import GATE, make_identity_desk
from tests.factories.sessions import make_session, say
from tests.fakes.openai_server import FakeOpenAI, Reply, final, serving_in_thread

MODEL = "openai-chat:gpt-4o-mini"
COMMAND = """python3 -I -S -c "import os, sys; sys.exit(os.environ['MESSAGE'] == 'refund')" """
FORBIDS = {"check_command": COMMAND, "config": {"args_from_env": ["MESSAGE"]}}
KIND = {"provider": "llm", "config": {"policy": "Be kind."}, "promote_to_policy": True}


def script(name: str = "words", **fields: Any) -> GateSpec:
    return GateSpec(**{"name": name, "on": "every_user_message", "provider": "script", **FORBIDS, **fields})


def told(deployment: Any, *texts: str) -> None:
    session = make_session(deployment)
    for text in texts:
        say(session, text)


def tried(deployment: Any, gate: GateSpec, **options: Any) -> BacktestReport:
    with tenant_scope(deployment.tenant_id):
        version = write_version(gate, deployment_id=deployment.pk)
    return backtest_version(deployment.tenant_id, version.gate_id, version.number, actor="user:7", **options)


def test_script_runs_on_recorded_messages(deployment: Any) -> None:
    told(deployment, "Hello", "refund")
    done = tried(deployment, script())
    assert [(one.recorded.excerpt, one.after.code) for one in done.changes] == [("refund", "check_failed")]


def test_script_in_force_decides_before_and_after(deployment: Any) -> None:
    told(deployment, "refund")
    with tenant_scope(deployment.tenant_id):
        save_gate(script("who"), deployment_id=deployment.pk, order=1)
    done = tried(deployment, script())
    assert done.skipped == ()
    assert done.changes == ()
    assert done.before == {"block": 1}


def test_identity_check_reads_what_was_said_just_before(tenant: Any, tmp_path: Path) -> None:
    """The name in one message, the date of birth in the next; the script has its skill and today's records."""
    desk = make_identity_desk(tenant, tmp_path)
    told(desk, "I am Maria Ortega", "born 1984-03-12", "I am Maria Ortega, born 1999-01-01")
    closed = GateSpec.model_validate({**GATE.model_dump(exclude_none=True), "check_expect": {"equals": "nobody"}})
    (change,) = tried(desk, closed).changes
    assert change.recorded.excerpt == "born 1984-03-12"
    assert change.before.action == "continue"
    assert change.after.action == "block"


@pytest.fixture
def provider(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeOpenAI]:
    """A model that calls everything unkind, with its key in the environment."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    with serving_in_thread([final({"action": "block"})]) as fake, override_allow_model_requests(True):
        monkeypatch.setenv("OPENAI_BASE_URL", fake.base_url)
        yield fake


@pytest.fixture
def paying(deployment: Any) -> Any:
    deployment.model_names, deployment.environment_keys = {"planner": MODEL}, True
    with tenant_scope(deployment.tenant_id):
        deployment.save(update_fields=["model_names", "environment_keys"])
    return deployment


def judge(**fields: Any) -> GateSpec:
    return GateSpec(**{"name": "kind", "on": "every_user_message", **KIND, **fields})


def test_model_is_not_asked_unless_somebody_wants_it(paying: Any, provider: FakeOpenAI) -> None:
    told(paying, "Hello")
    done = tried(paying, judge())
    assert done.untried == "llm"
    assert done.read == 0
    assert provider.requests == []


def test_model_in_force_is_left_out_by_name(paying: Any, provider: FakeOpenAI) -> None:
    told(paying, "refund")
    with tenant_scope(paying.tenant_id):
        save_gate(judge(), deployment_id=paying.pk)
    done = tried(paying, script())
    assert done.skipped == ("kind",)
    assert len(done.changes) == 1
    assert provider.requests == []


def test_model_is_asked_about_the_newest_messages_only(
    paying: Any, provider: FakeOpenAI, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runs, "MOST_ASKED", 2)
    told(paying, "one", "two", "three")
    done = tried(paying, judge(), ask_models=True)
    assert [one.recorded.excerpt for one in done.changes] == ["three", "two"]
    assert len(provider.requests) == 2


def test_asking_is_paid_by_a_run_that_ends(paying: Any, provider: FakeOpenAI) -> None:
    told(paying, "Hello")
    tried(paying, judge(), ask_models=True)
    with tenant_scope(paying.tenant_id):
        run = GuardedRun.objects.get()
        assert run.status == "completed"
        assert ToolCall.objects.get().state == "executed"
        assert ToolCall.objects.get().charged > 0


def test_asking_stops_where_its_money_ends(paying: Any, provider: FakeOpenAI, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runs, "MOST_USD", Decimal(0))
    told(paying, "Hello")
    (change,) = tried(paying, judge(), ask_models=True).changes
    assert change.after.code == "llm_error"
    assert provider.requests == []


def test_provider_that_is_down_is_a_no_of_the_policy_lane(paying: Any, provider: FakeOpenAI) -> None:
    provider.replies = [Reply(status=500)]
    told(paying, "Hello")
    (change,) = tried(paying, judge(), ask_models=True).changes
    assert change.after.code == "llm_error"


def test_nothing_recorded_opens_no_run(paying: Any, provider: FakeOpenAI) -> None:
    tried(paying, judge(), ask_models=True)
    with tenant_scope(paying.tenant_id):
        assert not GuardedRun.objects.exists()
