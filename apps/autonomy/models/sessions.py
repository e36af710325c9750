"""Autonomous sessions: one run of a task, and the phases that it went through.

A session's guarded run holds what it may do and what it has used; the session holds why it began, its state and how
it ended. `occasion` is unique in a tenant, so that nothing starts twice for the same reason.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, ClassVar
from uuid import UUID

from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Now

from apps.autonomy.enums import FINAL, Egress, SessionStatus, TriggerKind
from apps.autonomy.models.tasks import Task, Trigger
from apps.autonomy.schemas import TaskLimits
from apps.guard.enums import Phase, TerminalReason
from kernel.language import gettext_lazy as _
from kernel.tenancy import TenantModel


class AutonomousSession(TenantModel):
    """One run of a task.

    `root` is the first attempt of the same occasion (None: this one), `parent` the session that started this one, and
    `depth` the number of its ancestors. `limits` are frozen when it is queued. `marked`: it continues with the text of
    a session that had read instructions to the assistant. `egress` is the company's setting when it started.
    """

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
    requested_by = models.CharField(max_length=80, blank=True, help_text=_("user:…, trigger:… or session:…"))
    params: models.JSONField[dict[str, Any], dict[str, Any]] = models.JSONField(default=dict)
    context = models.TextField(blank=True, help_text=_("What another session passed on to this one: external text"))
    limits: models.JSONField[dict[str, Any], dict[str, Any]] = models.JSONField(default=dict)
    marked = models.BooleanField(default=False, db_default=False)
    egress = models.CharField(
        max_length=12, choices=Egress.choices, default=Egress.ANONYMOUS, db_default=Egress.ANONYMOUS.value
    )
    output = models.TextField(blank=True)
    receipt: models.JSONField[dict[str, Any] | None, dict[str, Any] | None] = models.JSONField(null=True)
    terminal_reason = models.CharField(max_length=20, choices=TerminalReason.choices, blank=True)
    halt_reason = models.CharField(max_length=20, choices=TerminalReason.choices, blank=True)
    error_code = models.CharField(max_length=60, blank=True)
    message_id: models.UUIDField[UUID | None, UUID | None] = models.UUIDField(null=True, help_text=_("The bus message"))
    awaits: models.UUIDField[UUID | None, UUID | None] = models.UUIDField(
        null=True, help_text=_("The work item that waits for a person's approval")
    )
    queued_at = models.DateTimeField(db_default=Now())
    not_before = models.DateTimeField(db_default=Now())
    admitted_at: models.DateTimeField[datetime | None, datetime | None] = models.DateTimeField(null=True)
    started_at: models.DateTimeField[datetime | None, datetime | None] = models.DateTimeField(null=True)
    ended_at: models.DateTimeField[datetime | None, datetime | None] = models.DateTimeField(null=True)
    heartbeat_at: models.DateTimeField[datetime | None, datetime | None] = models.DateTimeField(null=True)
    warned_at: models.DateTimeField[datetime | None, datetime | None] = models.DateTimeField(
        null=True, help_text=_("When the warning was sent that most of a limit is used")
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
        """The first attempt of this occasion. What attempts write is stored once, under it."""
        return self.root_id or self.pk

    @property
    def frozen_limits(self) -> TaskLimits:
        return TaskLimits.model_validate(self.limits)

    @property
    def is_over(self) -> bool:
        return self.status in FINAL


class Checkpoint(TenantModel):
    """A phase that a session entered, and its result: where another attempt can continue."""

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
