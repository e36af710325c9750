"""Model of what waits for approval at a gate: a turn of a conversation, or an attempt of a work item."""

from __future__ import annotations

from typing import ClassVar

from django.db import models
from django.db.models import F, Q

from apps.approvals.enums import PauseState, PauseTrigger
from apps.approvals.models.tokens import ApprovalToken
from kernel.tenancy import TenantModel


class GatePause(TenantModel):
    """Content that a gate holds back until a person decides, or its time is up (ADR 101).

    An approval of its card binds `payload`; `kept` is what is needed to resume, and is emptied afterwards. No process
    waits for a pause: the turn or attempt that resumes reads this row.
    """

    trigger = models.CharField(max_length=24, choices=PauseTrigger.choices)
    subject_kind = models.CharField(max_length=24)
    subject_id = models.UUIDField()
    session_id = models.UUIDField(null=True)
    deployment = models.ForeignKey("tenants.Deployment", on_delete=models.PROTECT, null=True, related_name="+")
    payload = models.JSONField()
    kept = models.JSONField(default=dict)
    state = models.CharField(max_length=12, choices=PauseState.choices, default=PauseState.WAITING)
    token = models.ForeignKey(ApprovalToken, on_delete=models.PROTECT, null=True, related_name="+")
    created_at = models.DateTimeField()
    expires_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True)

    class Meta(TenantModel.Meta):
        ordering: ClassVar = ["created_at"]
        constraints: ClassVar = [
            models.CheckConstraint(condition=Q(expires_at__gt=F("created_at")), name="gate_pause_ends"),
            models.CheckConstraint(
                condition=~Q(state=PauseState.APPROVED) | Q(token__isnull=False), name="gate_pause_approved_by_token"
            ),
        ]
        indexes: ClassVar = [
            models.Index(fields=["subject_kind", "subject_id", "created_at"], name="gate_pause_by_subject")
        ]

    def __str__(self) -> str:
        return f"{self.trigger}: {self.state}"

    @property
    def gate_names(self) -> frozenset[str]:
        return frozenset(str(gate["name"]) for gate in self.payload["gates"])
