"""Which gates are active for a deployment? Read once a turn, before its first step (spec 5.1 step 0)."""

from __future__ import annotations

from uuid import UUID

from django.db.models import F, Q
from pydantic import ValidationError

from apps.gates.enums import GateProvider
from apps.gates.models import Gate
from apps.gates.schemas import GateSpec


def active_gates(deployment_id: UUID) -> tuple[GateSpec, ...]:
    """The tenant's gates for all deployments first, then the deployment's own, each by order and name."""
    rows = Gate.objects.filter(Q(deployment_id=deployment_id) | Q(deployment_id=None), enabled=True)
    ordered = rows.order_by(F("deployment_id").asc(nulls_first=True), "order", "name")
    return tuple(_spec(row) for row in ordered)


def _spec(row: Gate) -> GateSpec:
    """A row that is no gate any more must not open what it guarded: it becomes one that nobody provides."""
    try:
        return row.to_spec()
    except ValidationError:
        step = row.after_step
        return GateSpec(name=row.name, on=row.on, after_step=step, provider=GateProvider.CUSTOM, on_block=row.on_block)
