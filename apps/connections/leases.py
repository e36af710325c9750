"""Who sees to this row now? Whoever wrote a lease on it that has not run out; inside the caller's tenant scope.

Always holds: one conditional update claims, so of any number of processes one has it; a process that dies leaves a
lease that runs out.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

from django.db.models import Q, QuerySet

from kernel.clock import now


def free() -> Q:
    """Rows that nobody holds, or whose holder is taken for dead."""
    return Q(leased_until=None) | Q(leased_until__lte=now())


def claim(rows: QuerySet[Any], *, time: timedelta, **fields: Any) -> UUID | None:
    """The lease of these rows, for this process; None where somebody else was first. `fields` change with it."""
    lease = uuid4()
    return lease if rows.update(leased_by=lease, leased_until=now() + time, **fields) else None
