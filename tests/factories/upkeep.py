"""Standing work, carried out now."""

from __future__ import annotations

import asyncio
from typing import Any

from apps.bus import retention
from apps.bus.deliveries import deliver
from apps.bus.enums import Kind, Queue
from apps.bus.services import lease, schedule
from kernel.clock import now
from kernel.tenancy import INSTALLATION, tenant_scope
from tests.factories.work import Hands


def stand(kind: Kind, scope_id: str) -> None:
    """Have the trusted worker carry out this standing message of the installation's, and no other of its messages: they
    are about all tenants that other tests have left."""
    with tenant_scope(INSTALLATION):
        schedule(kind, scope_id=scope_id, due_at=now())
        taken = lease(Queue.TRUSTED, consumer="test", scope_id=scope_id)
    assert taken is not None
    asyncio.run(deliver(INSTALLATION, taken, seconds=120))


def clean_up(tenant: Any) -> None:
    """Have what outlived its time deleted."""
    with tenant_scope(tenant):
        schedule(Kind.RETENTION, scope_id=retention.SCOPE, due_at=now())
    Hands(tenant).work(Queue.TRUSTED)
