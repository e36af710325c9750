"""Which gates are active for a deployment? Read once a turn, before its first step (spec 5.1 step 0)."""

from __future__ import annotations

import functools
import json
from typing import Any
from uuid import UUID

from django.db import connection
from pydantic import ValidationError

from apps.gates.enums import GateProvider
from apps.gates.models import COLUMNS, Gate
from apps.gates.schemas import GateSpec
from kernel.tenancy import current_tenant_id

_ACTIVE = """
    SELECT row_to_json(gate)::text FROM gates_gate gate
    WHERE tenant_id = %s AND enabled AND (deployment_id = %s OR deployment_id IS NULL)
    ORDER BY deployment_id NULLS FIRST, "order", name
"""


def active_gates(deployment_id: UUID) -> tuple[GateSpec, ...]:
    """The tenant's gates for all deployments first, then the deployment's own, each by order and name.

    One light statement; the gates are made once for each state the rows ever had.
    """
    with connection.cursor() as cursor:
        cursor.execute(_ACTIVE, [current_tenant_id(), deployment_id])
        return _specs(tuple(text for (text,) in cursor.fetchall()))


@functools.lru_cache(maxsize=256)
def _specs(rows: tuple[str, ...]) -> tuple[GateSpec, ...]:
    return tuple(_spec(_gate(json.loads(row))) for row in rows)


def _gate(values: dict[str, Any]) -> Gate:
    return Gate(**{column: values[column] for column in COLUMNS.values()})


def _spec(row: Gate) -> GateSpec:
    """A row that is no gate any more must not open what it guarded: it becomes one that nobody provides."""
    try:
        return row.to_spec()
    except ValidationError:
        step = row.after_step
        return GateSpec(name=row.name, on=row.on, after_step=step, provider=GateProvider.CUSTOM, on_block=row.on_block)
