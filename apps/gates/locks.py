"""Which rows does this room lock? A gate, before another version of it is written or comes into force."""

from __future__ import annotations

from uuid import UUID

from apps.gates.models import Gate
from kernel.errors import NotFound


def lock_gate(gate_id: UUID) -> Gate:
    """The gate, locked until the scope ends. Raises `NotFound`."""
    found: Gate | None = Gate.objects.select_for_update(of=("self",), no_key=True).filter(pk=gate_id).first()
    if found is None:
        raise NotFound("gate")
    return found
