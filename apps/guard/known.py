"""What does this process know of a run without asking? What it was when this process last had it under its lock.

Only to judge a call by what the database then compares: what somebody else has changed since is `seen` there otherwise,
and the call takes the long way (`services.at_once`). Never an answer by itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from apps.guard.schemas import RunFacts

_MOST = 4096


@dataclass(frozen=True)
class KnownRun:
    """`seen`: what the run may do, in the database's own words (`moves_sql.AS_OPENED`); only what these hold counts of
    `facts`. `zone`: its tenant's."""

    tenant_id: UUID
    run_id: UUID
    seen: str
    zone: str
    facts: RunFacts
    deployment_id: UUID | None
    task_ref: UUID | None


_known: dict[tuple[UUID, UUID], KnownRun] = {}


def remember(run: KnownRun) -> None:
    if len(_known) >= _MOST:
        _known.clear()
    _known[run.tenant_id, run.run_id] = run


def known(tenant_id: UUID, run_id: UUID) -> KnownRun | None:
    return _known.get((tenant_id, run_id))
