"""Standing work, carried out now."""

from __future__ import annotations

from typing import Any

from apps.bus import retention
from apps.bus.enums import Kind, Queue
from apps.bus.services import schedule
from kernel.clock import now
from kernel.tenancy import tenant_scope
from tests.factories.work import Hands


def stand(tenant: Any, kind: Kind, scope_id: str) -> None:
    """Have the trusted worker carry out this standing message of the tenant's, or of the installation's."""
    with tenant_scope(tenant):
        schedule(kind, scope_id=scope_id, due_at=now())
    Hands(tenant).work(Queue.TRUSTED)


def clean_up(tenant: Any) -> None:
    """Have what outlived its time deleted."""
    stand(tenant, Kind.RETENTION, retention.SCOPE)
