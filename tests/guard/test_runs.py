"""How runs begin, narrow, stop and end."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import uuid4

import pytest
from django.db import Error

from apps.audit.models import AuditEntry
from apps.guard import services
from apps.guard.enums import RunStatus, TerminalReason
from apps.guard.models import GuardedRun, ToolCall
from apps.guard.schemas import Limits
from kernel.errors import NotFound
from kernel.tenancy import ScopeError, tenant_scope
from tests.factories.guard import audited, change_run, make_run, reread


def halt(run: GuardedRun) -> bool:
    with tenant_scope(run.tenant_id):
        return services.halt(run.pk, actor="user:7")


def close(run: GuardedRun, status: RunStatus = RunStatus.COMPLETED) -> bool:
    with tenant_scope(run.tenant_id):
        return services.close_run(run.pk, status=status, reason=TerminalReason.COMPLETED)


def test_run_outside_a_scope_is_refused(database: None) -> None:
    with pytest.raises(ScopeError):
        services.open_run("chat", uuid4(), deployment_id=None)  # type: ignore[arg-type]


def test_opened_run_is_running_with_its_limits_as_given(tenant: Any) -> None:
    limits = Limits(cost_usd="0.000000001", calls=0)  # type: ignore[arg-type]
    run = reread(make_run(tenant, limits=limits))
    assert run.status == "running"
    assert run.halt_state == "running"
    assert run.phase == "interactive"
    assert run.frozen_limits == limits


@pytest.mark.parametrize("state", ["running", "paused"])
def test_halt_asks_the_run_to_stop_once_and_names_who_asked(tenant: Any, state: str) -> None:
    run = make_run(tenant)
    change_run(run, halt_state=state)
    assert halt(run) is True
    assert halt(run) is False
    assert reread(run).halt_state == "halt_requested"
    assert [event for event, _ in audited(run)] == ["halt_requested"]
    with tenant_scope(tenant):
        assert AuditEntry.objects.get(event="halt_requested").actor == "user:7"


def test_halt_of_a_foreign_run_finds_nothing(tenant: Any, other_tenant: Any) -> None:
    run = make_run(other_tenant)
    with tenant_scope(tenant), pytest.raises(NotFound):
        services.halt(run.pk)


def test_closed_run_has_its_reason_and_end_which_nothing_changes(tenant: Any) -> None:
    run = make_run(tenant)
    assert close(run, RunStatus.FAILED) is True
    assert close(run) is False
    assert halt(run) is False
    fresh = reread(run)
    assert fresh.status == "failed"
    assert fresh.halt_state == "running"
    assert fresh.terminal_reason == "completed"
    assert fresh.ended_at is not None


def write_call(run: GuardedRun, *, seq: int) -> None:
    with tenant_scope(run.tenant_id):
        ToolCall.objects.create(
            run=run, seq=seq, effect_key="k", intent="run_skill", tool="t", args_digest="d", state="admitted"
        )


@pytest.mark.parametrize(
    "wrong",
    [
        lambda run: change_run(run, status="completed"),
        lambda run: change_run(run, cost_reserved=-1),
        lambda run: write_call(run, seq=2),
    ],
    ids=["ended without an end", "negative cost", "effect key used twice"],
)
def test_row_that_cannot_be_is_refused_by_the_database(tenant: Any, wrong: Callable[[GuardedRun], None]) -> None:
    run = make_run(tenant)
    write_call(run, seq=1)
    with pytest.raises(Error):
        wrong(run)
