"""When does what fell silent end? Every web process looks now and then; no worker may end an execution or a hold."""

from __future__ import annotations

import logging
from uuid import UUID

from apps.safety.services import end_silent, expire_pauses
from apps.tenants.queries import over_all
from kernel.tenancy import tenant_scope

_log = logging.getLogger(__name__)


def sweep() -> None:
    """Each company in a scope of its own; one company's trouble does not stop the others'."""
    over_all(sweep_of)


def sweep_of(tenant_id: UUID) -> None:
    for step in (end_silent, expire_pauses):
        try:
            with tenant_scope(tenant_id):
                step()
        except Exception as error:  # noqa: BLE001 (the next round tries again)
            _log.error(
                "safety_upkeep_failed tenant=%s step=%s error=%s", tenant_id, step.__name__, type(error).__name__
            )
