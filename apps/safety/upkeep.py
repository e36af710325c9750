"""When does what fell silent end? Every web process looks now and then; no worker may end an execution or a hold."""

from __future__ import annotations

import logging
from uuid import UUID

from apps.safety.services import end_silent, expire_pauses
from apps.tenants.queries import all_tenants
from kernel.tenancy import tenant_scope

_log = logging.getLogger(__name__)


def sweep() -> None:
    """Each company in a scope of its own; one company's trouble does not stop the others'."""
    for tenant in all_tenants():
        sweep_of(tenant.pk)


def sweep_of(tenant_id: UUID) -> None:
    for step in (end_silent, expire_pauses):
        try:
            with tenant_scope(tenant_id):
                step()
        except Exception:  # noqa: BLE001 (the next round tries again)
            _log.exception("safety_upkeep_failed tenant=%s", tenant_id)
