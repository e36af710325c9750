"""Tasks, the triggers that start them, and the occurrences that triggers wait for."""

from __future__ import annotations

from datetime import datetime
from typing import Any, ClassVar
from uuid import UUID

from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from apps.autonomy.enums import BuiltinWorkflow, TriggerKind
from apps.autonomy.schemas import ROUTE, ChainNext, MemoryUpdate, Notify, Silent, TaskLimits
from kernel.language import gettext_lazy as _
from kernel.tenancy import TenantModel


def _silent() -> dict[str, object]:
    return {"kind": "silent"}


class Task(TenantModel):
    """What is to be done, for whom, with which tools, and where the result goes.

    Sessions of one `lane` run one at a time, in order; "" is a lane of the task's own. A higher `priority` goes first.
    """

    name = models.CharField(max_length=120)
    owner = models.ForeignKey("tenants.User", on_delete=models.SET_NULL, null=True, related_name="+")
    deployment = models.ForeignKey("tenants.Deployment", on_delete=models.PROTECT, related_name="+")
    playbook = models.CharField(
        max_length=20, choices=BuiltinWorkflow.choices, default=BuiltinWorkflow.NONE, blank=True
    )
    prompt = models.TextField(blank=True)
    skills: models.JSONField[list[str], list[str]] = models.JSONField(default=list, blank=True)
    tool_allow: models.JSONField[list[str] | None, list[str] | None] = models.JSONField(null=True, blank=True)
    tool_deny: models.JSONField[list[str], list[str]] = models.JSONField(default=list, blank=True)
    model_name = models.CharField(
        _("model"), max_length=120, blank=True, help_text=_("Empty: the deployment's planner model")
    )
    lane = models.CharField(max_length=60, blank=True)
    priority = models.PositiveSmallIntegerField(default=5)
    critical = models.BooleanField(default=False, help_text=_("Keeps running while non-critical tasks are paused"))
    route: models.JSONField[dict[str, Any], dict[str, Any]] = models.JSONField(default=_silent)
    limits: models.JSONField[dict[str, Any], dict[str, Any]] = models.JSONField(default=dict, blank=True)
    max_attempts = models.PositiveSmallIntegerField(default=3)
    delegates_to: models.JSONField[list[str], list[str]] = models.JSONField(
        default=list, blank=True, help_text=_("Tasks to which its planner may delegate")
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
                condition=Q(playbook=BuiltinWorkflow.NONE) & ~Q(prompt="") | ~Q(playbook=BuiltinWorkflow.NONE),
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
    def session_lane(self) -> str:
        """The lane of its sessions."""
        return self.lane or str(self.pk)

    @property
    def own_limits(self) -> TaskLimits:
        return TaskLimits.model_validate(self.limits)

    @property
    def result_route(self) -> Silent | Notify | MemoryUpdate | ChainNext:
        return ROUTE.validate_python(self.route)


class Trigger(TenantModel):
    """When a task runs.

    `topic` is the key by which it is found when something happens (`rules.topic_for`); `next_at` is when it is due by
    the clock.
    """

    task = models.ForeignKey(Task, on_delete=models.PROTECT, related_name="triggers")
    kind = models.CharField(max_length=12, choices=TriggerKind.choices)
    spec: models.JSONField[dict[str, object], dict[str, object]] = models.JSONField(default=dict, blank=True)
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
    """An event that a trigger waits for.

    All occurrences of a trigger become one session and are deleted with it; the session stores how many there were and
    the first of their subjects.
    """

    trigger = models.ForeignKey(Trigger, on_delete=models.CASCADE, related_name="+", db_index=False)
    subject = models.CharField(max_length=80, blank=True)
    created_at = models.DateTimeField(db_default=Now())

    class Meta(TenantModel.Meta):
        indexes: ClassVar = [models.Index(fields=["tenant", "trigger"], name="autonomy_occurrence_due")]
