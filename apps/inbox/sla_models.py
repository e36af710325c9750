"""SLA policies, what happened in conversations that are with the team, and the clocks computed from it."""

from __future__ import annotations

from datetime import datetime
from typing import ClassVar

from django.db import models
from django.db.models import Q
from django.db.models.functions import Lower

from apps.inbox.enums import SlaEvent, SlaOutcome, SlaTarget
from kernel.language import gettext_lazy as _
from kernel.tenancy import TenantModel


class SlaPolicy(TenantModel):
    """Within how many minutes the team replies and resolves; None for no target.

    `teams` and `deployments`: ids as texts; empty for all. Of several policies the first by `position` holds.
    """

    name = models.CharField(max_length=60)
    position = models.PositiveSmallIntegerField(default=1)
    first_reply: models.PositiveIntegerField[int | None, int | None] = models.PositiveIntegerField(null=True)
    next_reply: models.PositiveIntegerField[int | None, int | None] = models.PositiveIntegerField(null=True)
    resolution: models.PositiveIntegerField[int | None, int | None] = models.PositiveIntegerField(null=True)
    in_opening_hours = models.BooleanField(default=True)
    teams: models.JSONField[list[str], list[str]] = models.JSONField(default=list, blank=True)
    deployments: models.JSONField[list[str], list[str]] = models.JSONField(default=list, blank=True)
    changed_at = models.DateTimeField()

    class Meta(TenantModel.Meta):
        app_label = "inbox"
        verbose_name = _("SLA policy")
        verbose_name_plural = _("SLA policies")
        ordering: ClassVar = ["position", Lower("name")]
        constraints: ClassVar = [
            models.UniqueConstraint("tenant", Lower("name"), name="sla_policy_name_once"),
            models.CheckConstraint(condition=~Q(name=""), name="sla_policy_has_name"),
            models.CheckConstraint(
                condition=Q(first_reply__gte=1) | Q(next_reply__gte=1) | Q(resolution__gte=1),
                name="sla_policy_has_target",
            ),
        ]

    def __str__(self) -> str:
        return self.name


class SlaMoment(TenantModel):
    """Something that starts, pauses or stops the clocks of a conversation: when, and never what was said."""

    session = models.ForeignKey("silas_sessions.ChatSession", on_delete=models.PROTECT, related_name="+")
    event = models.CharField(max_length=12, choices=SlaEvent.choices)
    at = models.DateTimeField()
    until: models.DateTimeField[datetime | None, datetime | None] = models.DateTimeField(null=True)

    class Meta(TenantModel.Meta):
        app_label = "inbox"
        verbose_name = _("SLA moment")
        verbose_name_plural = _("SLA moments")
        ordering: ClassVar = ["session", "at"]


class SlaClock(TenantModel):
    """One run of a clock (`sla_clocks.Clock`), stored so that the inbox can be filtered and sorted by it.

    A clock that is missed runs on until it ends, and stays missed.
    """

    session = models.ForeignKey("silas_sessions.ChatSession", on_delete=models.PROTECT, related_name="+")
    policy = models.ForeignKey(SlaPolicy, on_delete=models.SET_NULL, null=True, related_name="+")
    target = models.CharField(max_length=12, choices=SlaTarget.choices)
    outcome = models.CharField(max_length=10, choices=SlaOutcome.choices, default=SlaOutcome.RUNNING)
    started_at = models.DateTimeField()
    due_at: models.DateTimeField[datetime | None, datetime | None] = models.DateTimeField(null=True)
    ended_at: models.DateTimeField[datetime | None, datetime | None] = models.DateTimeField(null=True)

    class Meta(TenantModel.Meta):
        app_label = "inbox"
        verbose_name = _("SLA clock")
        verbose_name_plural = _("SLA clocks")
        ordering: ClassVar = ["session", "started_at"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["session", "target", "started_at"], name="sla_clock_once"),
            models.CheckConstraint(
                condition=~Q(outcome__in=[SlaOutcome.MET, SlaOutcome.CANCELLED]) | Q(ended_at__isnull=False),
                name="sla_clock_outcome_has_end",
            ),
            models.CheckConstraint(
                condition=~Q(outcome=SlaOutcome.RUNNING) | Q(ended_at=None), name="sla_clock_runs_without_end"
            ),
        ]
        indexes: ClassVar = [
            models.Index(fields=["tenant", "due_at"], condition=Q(ended_at=None), name="sla_clock_running"),
            models.Index(fields=["tenant", "started_at"], name="sla_clock_by_start"),
        ]

    def __str__(self) -> str:
        return f"{self.get_target_display()}: {self.get_outcome_display()}"

    @property
    def is_missed(self) -> bool:
        return self.outcome == SlaOutcome.MISSED
