"""Reads of tasks, sessions, limits and notices. Inside a scope; foreign ids raise `NotFound`."""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping
from decimal import Decimal
from typing import Any, TypeVar
from uuid import UUID

from django.db.models import Count, Exists, Model, Q, QuerySet
from pydantic import ValidationError

from apps.autonomy import rules
from apps.autonomy.enums import FindingState, SpawnRefusal, TriggerKind
from apps.autonomy.models import (
    Artifact,
    AutonomousSession,
    AutonomySettings,
    Checkpoint,
    Finding,
    MemberOptIn,
    MemoryProposal,
    Notification,
    Precedent,
    Task,
    Trigger,
)
from apps.autonomy.schemas import DEFAULT_LIMITS, TaskLimits
from apps.guard.enums import Phase
from apps.guard.models import GuardedRun
from apps.tenants.enums import Role
from apps.tenants.models import Membership, Tenant, User
from kernel.clock import now
from kernel.errors import NotFound
from kernel.tenancy import current_tenant_id

LIMIT, MOST = 50, 200
_KEPT_PHASES = (Phase.INTAKE, Phase.ANALYSIS, Phase.DRAFTING)
Row = TypeVar("Row", bound=Model)
_log = logging.getLogger(__name__)


def autonomy_settings() -> AutonomySettings:
    """What the company allows; without a row, the defaults, with which nothing runs."""
    row: AutonomySettings | None = AutonomySettings.objects.first()
    return row or AutonomySettings()


def company_limits(settings: AutonomySettings) -> TaskLimits:
    """What the company allows one session at most.

    A row that cannot be read means the default limits: it neither lifts a limit nor stops the company.
    """
    try:
        return TaskLimits.model_validate(settings.limits)
    except ValidationError:
        _log.error("autonomy_settings_unreadable tenant=%s", settings.tenant_id)
        return DEFAULT_LIMITS


def has_opted_in(user_id: UUID | None) -> bool:
    return user_id is not None and bool(MemberOptIn.objects.filter(user_id=user_id).exists())


def opted_in_users(user_ids: Collection[UUID | None]) -> set[UUID]:
    known = {pk for pk in user_ids if pk is not None}
    return set(MemberOptIn.objects.filter(user_id__in=known).values_list("user_id", flat=True))


def spawn_refusal(task: Task) -> SpawnRefusal | None:
    """Why no session of this task may start now; None when it may. Checked at every spawn and again at admission."""
    return rules.spawn_refusal(
        enabled=autonomy_settings().enabled,
        deleted=task.deleted_at is not None,
        quarantined=task.quarantined_at is not None,
        has_owner=task.owner_id is not None,
        opted_in=has_opted_in(task.owner_id),
    )


def tasks() -> list[Task]:
    return list(Task.objects.select_related("deployment", "owner").filter(deleted_at=None))


def task(task_id: UUID) -> Task:
    row: Task | None = Task.objects.select_related("deployment").filter(pk=task_id, deleted_at=None).first()
    if row is None:
        raise NotFound()
    return row


def delegate_candidates(owner_id: UUID, *, of: Task | None = None) -> QuerySet[Task]:
    """The tasks to which a task of this member could delegate, of any deployment, and those already listed by `of`."""
    final = Q(owner=owner_id, playbook="", escalates_to=None, delegates_to=[])
    listed = Q(pk__in=of.delegates_to) if of else Q()
    others = Task.objects.filter(deleted_at=None)
    if of is not None:
        others = others.exclude(pk=of.pk)
    candidates: QuerySet[Task] = others.filter(final | listed).order_by("name")
    return candidates


def delegates_of(task: Task) -> list[Task]:
    """The tasks to which this one may delegate, as its list says."""
    return list(Task.objects.filter(pk__in=task.delegates_to, deleted_at=None).order_by("name"))


def triggers_of(task_id: UUID) -> list[Trigger]:
    return list(Trigger.objects.filter(task_id=task_id, deleted_at=None, task__deleted_at=None))


def sessions(
    *, task_id: UUID | None = None, status: str | None = None, limit: int = LIMIT, offset: int = 0
) -> list[AutonomousSession]:
    """Newest first."""
    rows = AutonomousSession.objects.select_related("task", "run")
    rows = rows.filter(task_id=task_id) if task_id else rows
    rows = rows.filter(status=status) if status else rows
    start = max(offset, 0)
    return list(rows.order_by("-queued_at", "pk")[start : start + min(max(limit, 1), MOST)])


def session(session_id: UUID) -> AutonomousSession:
    rows = AutonomousSession.objects.select_related("task__deployment", "run")
    row: AutonomousSession | None = rows.filter(pk=session_id).first()
    if row is None:
        raise NotFound()
    return row


def findings_of(session_id: UUID) -> list[Finding]:
    return list(Finding.objects.filter(session_id=session_id, quarantined_at=None).order_by("created_at"))


def findings(
    *, task_id: UUID | None = None, state: str | None = None, limit: int = LIMIT, offset: int = 0
) -> list[Finding]:
    """Findings about what tasks are for, newest first; not those about the runs themselves."""
    rows = _findings().select_related("resolved_by")
    rows = rows.filter(task_id=task_id) if task_id else rows
    match state:
        case FindingState.OPEN:
            rows = rows.filter(gone_at=None, resolved_at=None)
        case FindingState.RESOLVED:
            rows = rows.filter(gone_at=None, resolved_at__isnull=False)
        case FindingState.GONE:
            rows = rows.filter(gone_at__isnull=False)
    return _page(rows.order_by("-created_at", "pk"), limit, offset)


def finding(finding_id: UUID) -> Finding:
    row: Finding | None = _findings().filter(pk=finding_id).first()
    if row is None:
        raise NotFound()
    return row


def open_findings_by_task() -> dict[UUID, int]:
    """How many open findings each task has; tasks without any are left out."""
    counts = _findings().filter(gone_at=None, resolved_at=None).order_by().values_list("task_id")
    return dict(counts.annotate(many=Count("pk")))


def _findings() -> QuerySet[Finding]:
    rows: QuerySet[Finding] = Finding.objects.filter(quarantined_at=None).exclude(phase=Phase.ETHICS_REVIEW)
    return rows


def artifacts_of(session_id: UUID) -> list[Artifact]:
    return list(Artifact.objects.filter(session_id=session_id, quarantined_at=None).order_by("created_at"))


def artifact(artifact_id: UUID) -> Artifact:
    row: Artifact | None = Artifact.objects.filter(pk=artifact_id, quarantined_at=None).first()
    if row is None:
        raise NotFound()
    return row


def proposals(*, state: str | None = None, limit: int = LIMIT, offset: int = 0) -> list[MemoryProposal]:
    """Newest first."""
    rows = MemoryProposal.objects.filter(deleted_at=None, quarantined_at=None)
    rows = rows.filter(state=state) if state else rows
    return _page(rows.order_by("-created_at", "pk"), limit, offset)


def proposal(proposal_id: UUID) -> MemoryProposal:
    rows = MemoryProposal.objects.filter(deleted_at=None, quarantined_at=None)
    row: MemoryProposal | None = rows.filter(pk=proposal_id).first()
    if row is None:
        raise NotFound()
    return row


def precedents(*, state: str | None = None, limit: int = LIMIT, offset: int = 0) -> list[Precedent]:
    """The latest first."""
    rows = Precedent.objects.filter(quarantined_at=None)
    rows = rows.filter(state=state) if state else rows
    return _page(rows.order_by("-updated_at", "pk"), limit, offset)


def _page(rows: QuerySet[Row], limit: int, offset: int) -> list[Row]:
    start = max(offset, 0)
    return list(rows[start : start + min(max(limit, 1), MOST)])


def proposals_of(session_id: UUID) -> list[MemoryProposal]:
    return list(MemoryProposal.objects.filter(session_id=session_id, deleted_at=None).order_by("number"))


def notices(user: User, *, unread: bool = False) -> list[Notification]:
    rows = notices_for(user).select_related("session__task", "trigger__task")
    return list((rows.filter(read_at=None) if unread else rows)[:MOST])


def notices_for(user: User) -> QuerySet[Notification]:
    """The member's own notices, and for an owner those to all owners, which one owner reads for all."""
    is_owner = Exists(Membership.objects.filter(user_id=user.pk, role=Role.OWNER))
    rows: QuerySet[Notification] = Notification.objects.filter(Q(user_id=user.pk) | Q(is_owner, user=None))
    return rows


def usage_of(session: AutonomousSession) -> TaskLimits:
    """What the session has used, including what is reserved for calls under way."""
    run: GuardedRun | None = session.run
    return TaskLimits.model_construct(
        cost_usd=run.cost_total + run.cost_reserved if run else Decimal(0),
        calls=run.calls if run else 0,
        tokens=run.input_tokens + run.output_tokens if run else 0,
        memory_writes=MemoryProposal.objects.filter(session=session).count(),
    )


def delegated_sessions(session: AutonomousSession) -> list[AutonomousSession]:
    """The sessions to which it delegated, all attempts, without the one that collects their results."""
    rows = session.children.filter(trigger_kind=TriggerKind.DELEGATED).exclude(params__has_key="collects")
    return list(rows.select_related("task", "run").order_by("queued_at", "pk"))


def has_delegated(origin: UUID) -> bool:
    """Whether an attempt of this occasion has delegated."""
    occasions = [f"delegated:{origin}:{number}" for number in range(rules.MAX_CHILDREN)]
    return bool(AutonomousSession.objects.filter(occasion__in=occasions).exists())


def budget_left(session: AutonomousSession) -> TaskLimits:
    """What the session may still use. Reservations for calls under way count as used, and so does what it delegated."""
    delegated = [TaskLimits.model_validate(child.params["pool"]) for child in delegated_sessions(session)[:1]]
    return rules.subtract_limits(limits_left(session, session.frozen_limits), *delegated)


def limits_left(session: AutonomousSession, limits: TaskLimits) -> TaskLimits:
    """What is left of these limits after what the session has used."""
    run: GuardedRun | None = session.run
    if run is None:
        return limits
    return rules.limits_left(
        limits,
        cost=run.cost_total + run.cost_reserved,
        calls=run.calls,
        tokens=run.input_tokens + run.output_tokens,
        seconds=((session.ended_at or now()) - run.started_at).total_seconds(),
    )


def done_before(session: AutonomousSession) -> dict[str, Mapping[str, Any]]:
    """What earlier sessions of the occasion have done, by phase, so that it is neither repeated nor paid for twice."""
    if session.root_id is None:
        return {}
    rows = Checkpoint.objects.filter(Q(session__root_id=session.root_id) | Q(session_id=session.root_id))
    kept = rows.filter(phase__in=_KEPT_PHASES, left_at__isnull=False, state__isnull=False)
    earlier = kept.filter(session__queued_at__lt=session.queued_at).exclude(session=session)
    return {row.phase: row.state for row in earlier.order_by("entered_at") if row.state}


def ancestors_of(session: AutonomousSession | None) -> list[AutonomousSession]:
    """The session itself, then its ancestors, nearest first."""
    chain: list[AutonomousSession] = []
    while session is not None and len(chain) <= rules.MAX_DEPTH:
        chain.append(session)
        session = session.parent
    return chain


def tenant_timezone() -> str:
    """The tenant's time zone, in which schedules are interpreted."""
    return str(Tenant.objects.values_list("timezone", flat=True).get(pk=current_tenant_id()))
