"""The dry run: what a version would change, over what is on record; bounded, and one audit entry is all it leaves."""

from __future__ import annotations

import json
from itertools import count
from typing import Any
from uuid import uuid4

import pytest
from django.db import connection

from apps.audit.models import AuditEntry
from apps.gates.backtest import evaluation, runs
from apps.gates.backtest.runs import BacktestReport, backtest_version
from apps.gates.schemas import GateSpec
from apps.gates.services import save_gate, write_version
from apps.sessions import chronicle
from apps.sessions.enums import EntryKind, Sender
from apps.sessions.locks import lock_session
from apps.sessions.models import ChronicleEntry
from kernel.errors import SilasError
from kernel.taint import Taint
from kernel.tenancy import tenant_scope
from tests.factories.sessions import make_session, say
from tests.factories.tenants import make_deployment
from tests.factories.work import Desk, make_desk, note

FORBIDS = {"config": {"pattern": r"\A(?!.*refund)"}}
REDACTS = {"config": {"redact": "refund"}}


def spec(on: str = "every_user_message", **fields: Any) -> GateSpec:
    return GateSpec(**{"name": "words", "on": on, "type": "regex", **FORBIDS, **fields})


def told(deployment: Any, *texts: str) -> Any:
    session = make_session(deployment)
    for text in texts:
        say(session, text)
    return session


def answered(session: Any, text: str) -> None:
    with tenant_scope(session.tenant_id):
        held = lock_session(session.pk)
        chronicle.append(held, kind=EntryKind.MESSAGE, sender=Sender.BOT, text=text, taint=Taint.AUTH)


def tried(deployment: Any, gate: GateSpec, **options: Any) -> BacktestReport:
    with tenant_scope(deployment.tenant_id):
        version = write_version(gate, deployment_id=deployment.pk)
    return backtest_version(deployment.tenant_id, version.gate_id, version.number, actor="user:7", **options)


def test_draft_that_blocks_more_names_the_messages(deployment: Any) -> None:
    session = told(deployment, "Hello", "I want a refund", "Thanks")
    (change,) = tried(deployment, spec()).changes
    assert change.recorded.place == session.pk
    assert change.recorded.seq == 2
    assert change.recorded.excerpt == "I want a refund"
    assert change.before.action == "continue"
    assert change.after.action == "block"
    assert change.after.code == "no_match"


def test_draft_is_compared_with_the_version_in_force(deployment: Any) -> None:
    told(deployment, "I want a refund", "My card is lost")
    with tenant_scope(deployment.tenant_id):
        save_gate(spec(), deployment_id=deployment.pk)
    done = tried(deployment, spec(config={"pattern": r"\A(?!.*card)"}))
    assert [(one.recorded.excerpt, one.after.action) for one in done.changes] == [
        ("My card is lost", "block"),
        ("I want a refund", "continue"),
    ]


def test_counts_say_what_both_sets_decide(deployment: Any) -> None:
    told(deployment, "Hello", "I want a refund", "Another refund")
    done = tried(deployment, spec())
    assert done.read == 3
    assert done.before == {"continue": 3}
    assert done.after == {"continue": 1, "block": 2}


def test_rewriting_is_a_change_of_its_own(deployment: Any) -> None:
    told(deployment, "I want a refund")
    (change,) = tried(deployment, spec(**REDACTS)).changes
    assert change.before.rewritten is False
    assert change.after.rewritten is True
    assert change.after.action == "continue"


def test_gate_that_changes_nothing_says_so(deployment: Any) -> None:
    told(deployment, "Hello")
    done = tried(deployment, spec())
    assert done.changes == ()
    assert done.read == 1
    assert done.untried == ""


def test_other_gates_of_the_set_decide_too(deployment: Any) -> None:
    """A message that another gate blocks already is blocked before and after."""
    told(deployment, "I want a refund")
    with tenant_scope(deployment.tenant_id):
        save_gate(spec(name="earlier"), deployment_id=deployment.pk, order=1)
    assert tried(deployment, spec()).changes == ()


def test_answers_are_tried_for_gates_of_answers(deployment: Any) -> None:
    session = told(deployment, "I want a refund")
    answered(session, "Here is your refund")
    (change,) = tried(deployment, spec(on="every_agent_response")).changes
    assert change.recorded.excerpt == "Here is your refund"


@pytest.fixture
def desk(tenant: Any, tmp_path: Any) -> Desk:
    return make_desk(tenant, tmp_path)


def test_calls_of_planned_work_are_tried_for_gates_of_calls(desk: Desk) -> None:
    desk.propose(note(50))
    limit = {"type": "numeric_range", "extract": "note", "auto_approve": {"min": 0, "max": 20}, "config": {}}
    (change,) = tried(desk.deployment, spec(on="on_tool_call", **limit)).changes
    assert change.recorded.seq == 0
    assert change.after.code == "out_of_range"


def test_steps_of_work_are_said_not_to_be_recorded(deployment: Any) -> None:
    done = tried(deployment, spec(on="after_step", after_step=1))
    assert done.untried == "after_step"
    assert done.read == 0


def test_deployment_without_messages_says_so(deployment: Any) -> None:
    assert tried(deployment, spec()).untried == "nothing_recorded"


def test_newest_messages_are_read_and_no_more_than_asked(deployment: Any) -> None:
    told(deployment, *(f"refund {number}" for number in range(6)))
    done = tried(deployment, spec(), messages=2)
    assert [change.recorded.excerpt for change in done.changes] == ["refund 5", "refund 4"]


def test_nobody_can_ask_for_more_than_the_bound(deployment: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr(runs, "MOST_MESSAGES", 3)
    told(deployment, *(f"refund {number}" for number in range(5)))
    assert tried(deployment, spec(), messages=10_000).read == 3


def test_run_that_takes_too_long_stops_and_says_how_far_it_came(deployment: Any) -> None:
    told(deployment, "refund 1", "refund 2", "refund 3")
    ticks = count(step=runs.MOST_SECONDS * 0.6)
    done = tried(deployment, spec(), clock=lambda: next(ticks))
    assert done.found == 3
    assert done.read == 1
    assert done.complete is False


def test_messages_of_another_deployment_are_not_read(tenant: Any, deployment: Any) -> None:
    told(make_deployment(tenant), "I want a refund")
    assert tried(deployment, spec()).read == 0


def test_gate_for_all_is_tried_on_the_deployment_that_is_named(deployment: Any) -> None:
    told(deployment, "I want a refund")
    with tenant_scope(deployment.tenant_id):
        version = write_version(spec())
    done = backtest_version(deployment.tenant_id, version.gate_id, 1, actor="user:7", deployment_id=deployment.pk)
    assert len(done.changes) == 1


def test_gate_for_all_without_a_deployment_is_refused(deployment: Any) -> None:
    with tenant_scope(deployment.tenant_id):
        version = write_version(spec())
    with pytest.raises(SilasError) as refused:
        backtest_version(deployment.tenant_id, version.gate_id, 1, actor="user:7")
    assert refused.value.code == "deployment_missing"


@pytest.mark.parametrize("foreign", ["tenant", "deployment", "version", "unknown"])
def test_what_is_not_mine_is_not_found(tenant: Any, other_tenant: Any, deployment: Any, foreign: str) -> None:
    theirs = make_deployment(other_tenant)
    with tenant_scope(tenant):
        gate = write_version(spec(), deployment_id=deployment.pk).gate
    asked: dict[str, Any] = {
        "tenant": (other_tenant.pk, gate.pk, 1, None),
        "deployment": (tenant.pk, gate.pk, 1, theirs.pk),
        "version": (tenant.pk, gate.pk, 2, None),
        "unknown": (tenant.pk, uuid4(), 1, None),
    }
    tenant_id, gate_id, number, deployment_id = asked[foreign]
    with pytest.raises(SilasError) as refused:
        backtest_version(tenant_id, gate_id, number, actor="user:7", deployment_id=deployment_id)
    assert refused.value.status == 404


def test_dry_run_writes_one_entry_with_counts_only(deployment: Any) -> None:
    told(deployment, "I want a refund", "Hello")
    with tenant_scope(deployment.tenant_id):
        before = (AuditEntry.objects.count(), ChronicleEntry.objects.count())
        version = write_version(spec(), deployment_id=deployment.pk)
    backtest_version(deployment.tenant_id, version.gate_id, 1, actor="user:7")
    with tenant_scope(deployment.tenant_id):
        entries = list(AuditEntry.objects.order_by("seq"))[before[0] + 1 :]
        assert len(entries) == 1
        assert entries[0].event == "gate_tried"
        assert entries[0].actor == "user:7"
        counts = {"version": 1, "read": 2, "found": 2, "changed": 1, "deployment": str(deployment.pk)}
        assert json.loads(entries[0].data) == counts
        assert ChronicleEntry.objects.count() == before[1]


def test_nothing_is_decided_inside_a_transaction(deployment: Any, monkeypatch: Any) -> None:
    told(deployment, "Hello")
    seen = []
    real = evaluation.check_gates

    def watched(*args: Any, **kwargs: Any) -> Any:
        seen.append(connection.in_atomic_block)
        return real(*args, **kwargs)

    monkeypatch.setattr(evaluation, "check_gates", watched)
    tried(deployment, spec())
    assert seen == [False, False]
