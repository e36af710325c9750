"""How runs begin, narrow, stop and end."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import pytest
from django.db import Error

from apps.guard import services
from apps.guard.enums import RunStatus, TerminalReason
from apps.guard.models import GuardedRun, ToolCall
from apps.guard.schemas import Limits
from kernel.errors import NotFound
from kernel.tenancy import ScopeError, tenant_scope
from tests.factories.guard import audited, change_run, make_run, reread


def halt(run: GuardedRun) -> bool:
    with tenant_scope(run.tenant_id):
        return services.halt(run.pk)


def close(run: GuardedRun, status: RunStatus = RunStatus.COMPLETED) -> bool:
    with tenant_scope(run.tenant_id):
        return services.close_run(run.pk, status=status, reason=TerminalReason.COMPLETED)


def test_run_outside_a_scope_is_refused(database: None) -> None:
    with pytest.raises(ScopeError):
        services.open_run("chat", uuid4(), deployment_id=None)  # type: ignore[arg-type]


def test_opened_run_is_running(tenant: Any) -> None:
    run = reread(make_run(tenant))
    assert (run.status, run.halt_state, run.phase) == ("running", "running", "interactive")


def test_limits_are_kept_as_given(tenant: Any) -> None:
    limits = Limits(cost_usd="0.000000001", calls=0)  # type: ignore[arg-type]
    assert reread(make_run(tenant, limits=limits)).frozen_limits == limits


def test_halt_asks_the_run_to_stop(tenant: Any) -> None:
    run = make_run(tenant)
    assert (halt(run), reread(run).halt_state) == (True, "halt_requested")


def test_halt_of_a_paused_run_asks_too(tenant: Any) -> None:
    run = make_run(tenant)
    change_run(run, halt_state="paused")
    assert (halt(run), reread(run).halt_state) == (True, "halt_requested")


def test_second_halt_changes_and_writes_nothing(tenant: Any) -> None:
    run = make_run(tenant)
    halt(run)
    assert (halt(run), [event for event, _ in audited(run)]) == (False, ["halt_requested"])


def test_halt_of_a_finished_run_changes_nothing(tenant: Any) -> None:
    run = make_run(tenant)
    close(run)
    assert (halt(run), reread(run).halt_state) == (False, "running")


def test_halt_of_a_foreign_run_finds_nothing(tenant: Any, other_tenant: Any) -> None:
    run = make_run(other_tenant)
    with tenant_scope(tenant), pytest.raises(NotFound):
        services.halt(run.pk)


def test_halt_names_who_asked(tenant: Any) -> None:
    from apps.audit.models import AuditEntry

    run = make_run(tenant)
    with tenant_scope(tenant):
        services.halt(run.pk, actor="user:7")
    with tenant_scope(tenant):
        assert AuditEntry.objects.get(event="halt_requested").actor == "user:7"


def test_closed_run_has_its_reason_and_end(tenant: Any) -> None:
    run = make_run(tenant)
    close(run, RunStatus.FAILED)
    fresh = reread(run)
    assert (fresh.status, fresh.terminal_reason, fresh.ended_at is not None) == ("failed", "completed", True)


def test_second_ending_changes_nothing(tenant: Any) -> None:
    run = make_run(tenant)
    close(run, RunStatus.FAILED)
    assert (close(run), reread(run).status) == (False, "failed")


def test_ended_run_without_an_end_is_refused_by_the_database(tenant: Any) -> None:
    run = make_run(tenant)
    with pytest.raises(Error):
        change_run(run, status="completed")


def test_negative_cost_is_refused_by_the_database(tenant: Any) -> None:
    run = make_run(tenant)
    with pytest.raises(Error):
        change_run(run, cost_reserved=-1)


def test_effect_key_used_twice_is_refused_by_the_database(tenant: Any) -> None:
    run = make_run(tenant)
    write_call(run, seq=1)
    with pytest.raises(Error):
        write_call(run, seq=2)


def write_call(run: GuardedRun, *, seq: int) -> None:
    with tenant_scope(run.tenant_id):
        ToolCall.objects.create(
            run=run, seq=seq, effect_key="k", intent="run_skill", tool="t", args_digest="d", state="admitted"
        )
