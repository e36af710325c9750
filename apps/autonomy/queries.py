"""Reads of tasks, sessions, limits and notices. Inside a scope; foreign ids raise `NotFound`."""

from __future__ import annotations

import logging
from collections.abc import Collection
from decimal import Decimal
from uuid import UUID

from django.db.models import Exists, Q, QuerySet
from pydantic import ValidationError

from apps.autonomy import rules
from apps.autonomy.enums import SpawnRefusal, TriggerKind
from apps.autonomy.models import (
    AutonomousSession,
    AutonomySettings,
    Finding,
    MemberOptIn,
    MemoryProposal,
    Notification,
    Task,
    Trigger,
)
from apps.autonomy.schemas import DEFAULT_LIMITS, TaskLimits
from apps.guard.models import GuardedRun
from apps.tenants.enums import Role
from apps.tenants.models import Membership, Tenant, User
from kernel.clock import now
from kernel.errors import NotFound
from kernel.tenancy import current_tenant_id

LIMIT, MOST = 50, 200
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


def tasks(*, include_deleted: bool = False) -> list[Task]:
    rows = Task.objects.select_related("deployment", "owner")
    return list(rows if include_deleted else rows.filter(deleted_at=None))


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
