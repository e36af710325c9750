"""Row locks of this room: a gate, before a version is written or activated."""

from __future__ import annotations

from uuid import UUID

from apps.gates.models import Gate
from kernel.errors import NotFound


def lock_gate(gate_id: UUID) -> Gate:
    """The gate, locked until the scope ends. Raises `NotFound`."""
    gate: Gate | None = Gate.objects.select_for_update(of=("self",), no_key=True).filter(pk=gate_id).first()
    if gate is None:
        raise NotFound()
    return gate
