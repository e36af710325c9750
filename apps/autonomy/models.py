"""What runs unattended, when, and within what? Tasks, their triggers, and each time one runs: a session.

A session's guarded run holds what it may do and what it has used; the session holds why it began, where it stands and
how it ended. `occasion` is unique in a tenant, so that nothing begins twice for the same reason. What sessions leave
behind is in `outcomes`.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, ClassVar
from uuid import UUID

from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Now

from apps.autonomy.enums import FINAL, Playbook, SessionStatus, TriggerKind
from apps.autonomy.schemas import ROUTE, ChainNext, MemoryUpdate, Notify, Silent, TaskLimits
from apps.guard.enums import Phase, TerminalReason
from kernel.tenancy import TenantModel


def _silent() -> dict[str, Any]:
    return {"kind": "silent"}


class Task(TenantModel):
    """What is to be done, for whom, with what, and where its result goes. `lane`: of the sessions of one lane one runs
    at a time, in order; "" is the task's own. A higher `priority` goes first."""

    name = models.CharField(max_length=120)
    owner = models.ForeignKey("tenants.User", on_delete=models.SET_NULL, null=True, related_name="+")
    deployment = models.ForeignKey("tenants.Deployment", on_delete=models.PROTECT, related_name="+")
    playbook = models.CharField(max_length=20, choices=Playbook.choices, default=Playbook.NONE, blank=True)
    prompt = models.TextField(blank=True)
    skills: models.JSONField[list[str], list[str]] = models.JSONField(default=list, blank=True)
    tool_allow: models.JSONField[list[str] | None, list[str] | None] = models.JSONField(null=True, blank=True)
    tool_deny: models.JSONField[list[str], list[str]] = models.JSONField(default=list, blank=True)
    model_name = models.CharField(
        "model", max_length=120, blank=True, help_text="Empty: the deployment's planner model"
    )
    lane = models.CharField(max_length=60, blank=True)
    priority = models.PositiveSmallIntegerField(default=5)
    critical = models.BooleanField(default=False, help_text="Goes on when what is not critical is paused")
    route: models.JSONField[dict[str, Any], dict[str, Any]] = models.JSONField(default=_silent)
    limits: models.JSONField[dict[str, Any], dict[str, Any]] = models.JSONField(default=dict, blank=True)
    max_attempts = models.PositiveSmallIntegerField(default=3)
    delegates_to: models.JSONField[list[str], list[str]] = models.JSONField(
        default=list, blank=True, help_text="Tasks that its planner may ask"
    )
    escalates_to = models.ForeignKey("self", on_delete=models.SET_NULL, null=True, blank=True, related_name="+")
    quarantined_at: models.DateTimeField[datetime | None, datetime | None] = models.DateTimeField(null=True, blank=True)
    quarantine_reason = models.CharField(max_length=60, blank=True)
    created_at = models.DateTimeField(db_default=Now())
    updated_at = models.DateTimeField(db_default=Now())
    deleted_at: models.DateTimeField[datetime | None, datetime | None] = models.DateTimeField(null=True, blank=True)

    class Meta(TenantModel.Meta):
        ordering: ClassVar = ["name"]
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["tenant", "name"], condition=Q(deleted_at__isnull=True), name="autonomy_task_name_once"
            ),
            models.CheckConstraint(condition=Q(priority__lte=9), name="autonomy_task_priority"),
            models.CheckConstraint(
                condition=Q(max_attempts__gte=1, max_attempts__lte=10), name="autonomy_task_attempts"
            ),
            models.CheckConstraint(
                condition=Q(playbook=Playbook.NONE) & ~Q(prompt="") | ~Q(playbook=Playbook.NONE),
                name="autonomy_task_says_what",
            ),
            models.CheckConstraint(
                condition=Q(quarantined_at__isnull=True) | ~Q(quarantine_reason=""),
                name="autonomy_quarantine_has_reason",
            ),
        ]

    def __str__(self) -> str:
        return self.name

    deployment_id: UUID
    owner_id: UUID | None

    @property
    def line(self) -> str:
        """The lane that its sessions stand in."""
        return self.lane or str(self.pk)

    @property
    def own_limits(self) -> TaskLimits:
        return TaskLimits.model_validate(self.limits)

    @property
    def result_route(self) -> Silent | Notify | MemoryUpdate | ChainNext:
        return ROUTE.validate_python(self.route)


class Trigger(TenantModel):
    """When a task runs. `topic` is by which word it is found when something happens (`rules.topic_of`); `next_at` when
    it is due by the clock."""

    task = models.ForeignKey(Task, on_delete=models.PROTECT, related_name="triggers")
    kind = models.CharField(max_length=12, choices=TriggerKind.choices)
    spec: models.JSONField[dict[str, Any], dict[str, Any]] = models.JSONField(default=dict, blank=True)
    topic = models.CharField(max_length=80, blank=True, editable=False)
    next_at: models.DateTimeField[datetime | None, datetime | None] = models.DateTimeField(null=True, blank=True)
    last_at: models.DateTimeField[datetime | None, datetime | None] = models.DateTimeField(null=True, blank=True)
    enabled = models.BooleanField(default=True)
    disabled_reason = models.CharField(max_length=60, blank=True)
    cap_usd = models.DecimalField(max_digits=18, decimal_places=9, null=True, blank=True)
    created_at = models.DateTimeField(db_default=Now())
    deleted_at: models.DateTimeField[datetime | None, datetime | None] = models.DateTimeField(null=True, blank=True)

    class Meta(TenantModel.Meta):
        ordering: ClassVar = ["task", "created_at"]
        constraints: ClassVar = [
            models.CheckConstraint(condition=Q(cap_usd__isnull=True) | Q(cap_usd__gte=0), name="autonomy_trigger_cap"),
            models.CheckConstraint(
                condition=~Q(kind__in=[TriggerKind.DELEGATED, TriggerKind.ESCALATED]), name="autonomy_trigger_kind"
            ),
        ]
        indexes: ClassVar = [
            models.Index(
                fields=["tenant", "topic"],
                condition=Q(enabled=True, deleted_at__isnull=True) & ~Q(topic=""),
                name="autonomy_trigger_heard",
            ),
        ]

    task_id: UUID


class Occurrence(TenantModel):
    """Something happened that a trigger waits for. Many become one owed run, and are gone with it: the run knows how
    many, and which the first were."""

    trigger = models.ForeignKey(Trigger, on_delete=models.CASCADE, related_name="+", db_index=False)
    subject = models.CharField(max_length=80, blank=True)
    created_at = models.DateTimeField(db_default=Now())

    class Meta(TenantModel.Meta):
        indexes: ClassVar = [models.Index(fields=["tenant", "trigger"], name="autonomy_occurrence_due")]


class AutonomousSession(TenantModel):
    """One run of a task. `root` is the first attempt of the same occasion (None: it is this one), `parent` the session
    that began this one, `depth` how many did so above it. `limits` are frozen when it is queued. `marked`: a session
    whose words it goes on with had read instructions to the assistant (ADR 107)."""

    task = models.ForeignKey(Task, on_delete=models.PROTECT, related_name="sessions")
    trigger = models.ForeignKey(Trigger, on_delete=models.SET_NULL, null=True, related_name="+")
    trigger_kind = models.CharField(max_length=12, choices=TriggerKind.choices)
    run = models.OneToOneField("guard.GuardedRun", on_delete=models.PROTECT, null=True, related_name="+")
    parent = models.ForeignKey("self", on_delete=models.PROTECT, null=True, related_name="children")
    root = models.ForeignKey("self", on_delete=models.PROTECT, null=True, related_name="+")
    depth = models.PositiveSmallIntegerField(default=0)
    attempt = models.PositiveSmallIntegerField(default=1)
    occasion = models.CharField(max_length=200)
    status = models.CharField(max_length=20, choices=SessionStatus.choices, default=SessionStatus.QUEUED)
    phase = models.CharField(max_length=16, choices=Phase.choices, default=Phase.INTAKE)
    priority = models.PositiveSmallIntegerField(default=5)
    lane = models.CharField(max_length=60)
    requested_by = models.CharField(max_length=80, blank=True, help_text="user:…, trigger:… or session:…")
    params: models.JSONField[dict[str, Any], dict[str, Any]] = models.JSONField(default=dict)
    context = models.TextField(blank=True, help_text="What another session left for this one: a stranger's words")
    limits: models.JSONField[dict[str, Any], dict[str, Any]] = models.JSONField(default=dict)
    marked = models.BooleanField(default=False, db_default=False)
    output = models.TextField(blank=True)
    receipt: models.JSONField[dict[str, Any] | None, dict[str, Any] | None] = models.JSONField(null=True)
    terminal_reason = models.CharField(max_length=20, choices=TerminalReason.choices, blank=True)
    halt_reason = models.CharField(max_length=20, choices=TerminalReason.choices, blank=True)
    error_code = models.CharField(max_length=60, blank=True)
    message_id: models.UUIDField[UUID | None, UUID | None] = models.UUIDField(null=True, help_text="The bus message")
    awaits: models.UUIDField[UUID | None, UUID | None] = models.UUIDField(
        null=True, help_text="The work that a person is asked about"
    )
    queued_at = models.DateTimeField(db_default=Now())
    not_before = models.DateTimeField(db_default=Now())
    admitted_at: models.DateTimeField[datetime | None, datetime | None] = models.DateTimeField(null=True)
    started_at: models.DateTimeField[datetime | None, datetime | None] = models.DateTimeField(null=True)
    ended_at: models.DateTimeField[datetime | None, datetime | None] = models.DateTimeField(null=True)
    heartbeat_at: models.DateTimeField[datetime | None, datetime | None] = models.DateTimeField(null=True)
    warned_at: models.DateTimeField[datetime | None, datetime | None] = models.DateTimeField(
        null=True, help_text="It was told that most of a limit is used"
    )

    class Meta(TenantModel.Meta):
        ordering: ClassVar = ["-queued_at"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["tenant", "occasion"], name="autonomy_occasion_once"),
            models.CheckConstraint(
                condition=Q(status__in=FINAL, ended_at__isnull=False) & ~Q(terminal_reason="")
                | (~Q(status__in=FINAL) & Q(ended_at__isnull=True)),
                name="autonomy_session_ends_with_reason",
            ),
            models.CheckConstraint(
                condition=~Q(status=SessionStatus.RUNNING) | Q(run__isnull=False, admitted_at__isnull=False),
                name="autonomy_running_has_run",
            ),
            models.UniqueConstraint(
                fields=["tenant", "lane"],
                condition=Q(admitted_at__isnull=False, ended_at__isnull=True),
                name="autonomy_one_in_a_lane",
            ),
        ]
        indexes: ClassVar = [
            models.Index(
                fields=["tenant", "-priority", "queued_at"],
                condition=Q(status=SessionStatus.QUEUED, admitted_at__isnull=True),
                name="autonomy_session_waiting",
            ),
            models.Index(
                fields=["tenant", "admitted_at"],
                condition=Q(admitted_at__isnull=False, ended_at__isnull=True),
                name="autonomy_session_admitted",
            ),
            models.Index(
                fields=["tenant", "parent"],
                condition=Q(trigger_kind=TriggerKind.DELEGATED),
                name="autonomy_session_delegated",
            ),
            models.Index(fields=["tenant", "task", "-queued_at"], name="autonomy_session_by_task"),
            models.Index(fields=["tenant", "-queued_at"], name="autonomy_session_by_age"),
        ]

    task_id: UUID
    trigger_id: UUID | None
    run_id: UUID | None
    parent_id: UUID | None
    root_id: UUID | None

    @property
    def origin(self) -> UUID:
        """The first attempt of this occasion: what attempts write is kept once under it."""
        return self.root_id or self.pk

    @property
    def frozen_limits(self) -> TaskLimits:
        return TaskLimits.model_validate(self.limits)

    @property
    def is_over(self) -> bool:
        return self.status in FINAL


class Checkpoint(TenantModel):
    """A phase that a session entered, and what it brought when it was left: where another attempt may go on."""

    session = models.ForeignKey(AutonomousSession, on_delete=models.CASCADE, related_name="checkpoints", db_index=False)
    phase = models.CharField(max_length=16, choices=Phase.choices)
    entered_at = models.DateTimeField(db_default=Now())
    left_at: models.DateTimeField[datetime | None, datetime | None] = models.DateTimeField(null=True)
    outcome = models.CharField(max_length=60, blank=True)
    state: models.JSONField[dict[str, Any] | None, dict[str, Any] | None] = models.JSONField(null=True)

    class Meta(TenantModel.Meta):
        ordering: ClassVar = ["entered_at"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["session", "phase"], name="autonomy_phase_once"),
            models.CheckConstraint(
                condition=Q(left_at__isnull=True) | Q(left_at__gte=F("entered_at")), name="autonomy_phase_in_order"
            ),
        ]


class AutonomySettings(TenantModel):
    """What a company allows to run unattended; off until somebody switches it on. Read anew each time."""

    enabled = models.BooleanField(default=False)
    max_concurrent = models.PositiveSmallIntegerField(default=3)
    idle_seconds = models.PositiveIntegerField(default=300)
    limits: models.JSONField[dict[str, Any], dict[str, Any]] = models.JSONField(
        default=dict, blank=True, help_text="What one session may use at most, whatever its task says"
    )
    retry_base_seconds = models.PositiveIntegerField(default=5)
    retry_most_seconds = models.PositiveIntegerField(default=300)

    class Meta(TenantModel.Meta):
        verbose_name_plural = "autonomy settings"
        constraints: ClassVar = [models.UniqueConstraint(fields=["tenant"], name="autonomy_settings_once")]


class MemberOptIn(TenantModel):
    """A member allowed that tasks of theirs run unattended. Gone with the membership."""

    membership = models.OneToOneField("tenants.Membership", on_delete=models.CASCADE, related_name="+")
    user = models.ForeignKey("tenants.User", on_delete=models.CASCADE, related_name="+")
    opted_at = models.DateTimeField(db_default=Now())

    class Meta(TenantModel.Meta):
        constraints: ClassVar = [models.UniqueConstraint(fields=["tenant", "user"], name="autonomy_opt_in_once")]


from apps.autonomy.earned import FreedomProposal as FreedomProposal  # noqa: E402  (the same)
from apps.autonomy.earned import InitiativeSettings as InitiativeSettings  # noqa: E402
from apps.autonomy.earned import Outcome as Outcome  # noqa: E402
from apps.autonomy.earned import Preference as Preference  # noqa: E402
from apps.autonomy.earned import Suggestion as Suggestion  # noqa: E402
from apps.autonomy.outcomes import (  # noqa: E402  (their rows point at the ones above; Django finds models here)
    ContextProposal as ContextProposal,
)
from apps.autonomy.outcomes import Finding as Finding  # noqa: E402
from apps.autonomy.outcomes import MemoryProposal as MemoryProposal  # noqa: E402
from apps.autonomy.outcomes import Notification as Notification  # noqa: E402
from apps.autonomy.outcomes import OpenQuestion as OpenQuestion  # noqa: E402
from apps.autonomy.outcomes import Outbox as Outbox  # noqa: E402
from apps.autonomy.outcomes import Precedent as Precedent  # noqa: E402
from apps.autonomy.outcomes import Webhook as Webhook  # noqa: E402
