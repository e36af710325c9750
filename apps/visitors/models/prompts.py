"""Prompts put to the visitor of a conversation, and their answers.

They are separate from staff's approval cards: nothing here can issue or spend an approval. `answers` holds the
values of a form by field name. A sealed value is there from the moment it was given until it is taken, once. Written by
`prompts` alone.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, ClassVar

from django.db import models
from django.db.models import F, Q

from apps.approvals.enums import Risk
from apps.visitors.enums import AskKind, AskStatus
from kernel.clock import now
from kernel.tenancy import TenantModel

# What a visitor can undo nothing of is never theirs to press.
RISKS = (Risk.LOW, Risk.MEDIUM, Risk.HIGH)


class VisitorCard(TenantModel):
    """One question to the visitor of one conversation. `customer`: whom it was put to, where that was known."""

    session = models.ForeignKey("silas_sessions.ChatSession", on_delete=models.PROTECT, related_name="+")
    kind = models.CharField(max_length=16, choices=AskKind.choices)
    risk = models.CharField(max_length=8, choices=[(risk.value, risk.value) for risk in RISKS], default=Risk.LOW)
    payload: models.JSONField[dict[str, Any], dict[str, Any]] = models.JSONField()
    customer = models.CharField(max_length=80, blank=True)
    asked_by = models.CharField(max_length=80)
    status = models.CharField(max_length=12, choices=AskStatus.choices, default=AskStatus.OPEN)
    chosen = models.CharField(max_length=60, blank=True)
    answers: models.JSONField[dict[str, str], dict[str, str]] = models.JSONField(default=dict, blank=True)
    sealed: models.BinaryField[bytes | None, bytes | None] = models.BinaryField(null=True, editable=False)
    created_at = models.DateTimeField()
    expires_at = models.DateTimeField()
    settled_at: models.DateTimeField[datetime | None, datetime | None] = models.DateTimeField(null=True)

    class Meta(TenantModel.Meta):
        app_label = "silas_sessions"
        ordering: ClassVar = ["created_at"]
        constraints: ClassVar = [
            models.CheckConstraint(condition=Q(expires_at__gt=F("created_at")), name="visitor_card_ends"),
            models.CheckConstraint(
                condition=Q(status=AskStatus.OPEN) ^ Q(settled_at__isnull=False),
                name="visitor_card_settled_once",
            ),
            models.CheckConstraint(
                condition=Q(sealed=None) | Q(kind=AskKind.SECURE_INPUT, status=AskStatus.ANSWERED),
                name="visitor_card_seals_secrets",
            ),
            models.CheckConstraint(
                condition=Q(answers={}) | Q(kind=AskKind.FORM, status=AskStatus.ANSWERED),
                name="visitor_card_fills_forms",
            ),
        ]
        indexes: ClassVar = [models.Index(fields=["session", "status"], name="visitor_card_of_session")]

    @property
    def state(self) -> str:
        """`status`, or `expired` for one whose time is up: no notice is sent, because the card shows it."""
        late = self.status == AskStatus.OPEN and self.expires_at <= now()
        return "expired" if late else str(self.status)
