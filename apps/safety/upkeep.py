"""End what fell silent. Every web process looks now and then; no worker may end an execution or a hold."""

from __future__ import annotations

from uuid import UUID

from apps.safety.services import end_silent, expire_pauses
from apps.tenants.queries import over_all
from kernel.tenancy import over_each, scoped


def sweep() -> None:
    """Each company, and each step, in a scope of its own; the trouble of one does not stop the others'."""
    over_all(sweep_of)


def sweep_of(tenant_id: UUID) -> None:
    for step in (end_silent, expire_pauses):
        over_each([tenant_id], scoped(step))
