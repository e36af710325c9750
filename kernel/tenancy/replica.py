"""Read from a replica of the database (`DATABASE_REPLICA_URL`), which may be some seconds behind.

For figures and searches that cost much and may miss the latest seconds. What decides or writes reads the primary.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TypeVar

from django.db import DEFAULT_DB_ALIAS, OperationalError, connections

from kernel.tenancy.scope import current_tenant_id, tenant_scope, without_scope

T = TypeVar("T")
REPLICA = "replica"
_log = logging.getLogger(__name__)


def read_from_replica(read: Callable[[], T]) -> T:
    """Call `read` in a scope of the same tenant on the replica; without one, or while it is away, on the primary.

    `read` returns values, not querysets, and writes nothing: PostgreSQL refuses every change there.
    """
    if REPLICA not in connections:
        return read()
    try:
        return _on_replica(read)
    except OperationalError as error:
        _log.warning("replica_unavailable error=%s", type(error).__name__)
        return read()


def _on_replica(read: Callable[[], T]) -> T:
    """While `read` runs, this thread's default connection is the replica's, so that no statement misses it."""
    tenant_id = current_tenant_id()
    primary, replica = connections[DEFAULT_DB_ALIAS], connections[REPLICA]
    connections[DEFAULT_DB_ALIAS] = replica
    try:
        # The open scope is a transaction of the primary; the replica's own connection has no tenant set yet.
        with without_scope(), tenant_scope(tenant_id):
            return read()
    finally:
        connections[DEFAULT_DB_ALIAS] = primary
        replica.close()
