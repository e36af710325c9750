"""Runs, calls and stand-in handlers for tests of the guard and of the rooms that pass through it."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any
from uuid import uuid4

from apps.audit.models import AuditEntry
from apps.bus.enums import Kind
from apps.bus.services import schedule
from apps.guard import services
from apps.guard.enums import Origin, Phase
from apps.guard.models import Budget, GuardedRun
from apps.guard.schemas import Call, CallContext, HandlerResult
from kernel.clock import now
from kernel.tenancy import INSTALLATION, tenant_scope
from tests.factories.bus import carry_out_kinds

TOOL = "look_up"


def make_run(tenant: Any, **fields: Any) -> GuardedRun:
    with tenant_scope(tenant):
        return services.open_run(
            fields.pop("origin", Origin.CHAT),
            fields.pop("owner_ref", uuid4()),
            **{"deployment_id": None, "phase": Phase.INTERACTIVE, **fields},
        )


def change_run(run: GuardedRun, **fields: Any) -> None:
    """As somebody else would: straight in the database."""
    with tenant_scope(run.tenant_id):
        GuardedRun.objects.filter(pk=run.pk).update(**fields)


def reread(row: Any) -> Any:
    with tenant_scope(row.tenant_id):
        return type(row).objects.get(pk=row.pk)


def make_call(**fields: Any) -> Call:
    tool = fields.pop("tool", TOOL)
    return Call(**{"tool": tool, "args": {"n": 1}, "access": frozenset({tool}), **fields})


def make_budget(tenant: Any, limit: str, **fields: Any) -> Budget:
    with tenant_scope(tenant):
        row: Budget = Budget.objects.create(**{"period": "day", "limit_usd": Decimal(limit), **fields})
    return row


def answer(value: Any = "found", **more: Any) -> Callable[[CallContext], HandlerResult]:
    return lambda _: HandlerResult(value, **more)


def audited(run: GuardedRun) -> list[tuple[str, str]]:
    """(event, data) of everything written down about a run, after its opening."""
    with tenant_scope(run.tenant_id):
        rows = AuditEntry.objects.filter(subject=f"run:{run.pk}").order_by("seq")
        return [(row.event, row.data) for row in rows if row.event != "run_started"]


def settle_lost() -> None:
    """Give up the calls whose deadline has passed, of all tenants, as the worker does that is woken for it."""
    with tenant_scope(INSTALLATION):
        schedule(Kind.LOST_CALLS, scope_id="lost_calls", due_at=now())
    carry_out_kinds(INSTALLATION, Kind.LOST_CALLS)
