"""What is a person asked, and what did they answer? Decisions are facts: the database refuses to change them."""

from __future__ import annotations

from typing import ClassVar

from django.conf import settings
from django.db import models
from django.db.models import F, Q

from apps.approvals.enums import (
    ApprovalScope,
    ApprovalStrength,
    ApprovalVerdict,
    CardKind,
    CardStatus,
    Risk,
    Withdrawal,
)
from kernel.clock import now
from kernel.tenancy import TenantModel

_SETTLING = frozenset({CardStatus.DECIDED, CardStatus.EXPIRED, CardStatus.WITHDRAWN})
# The database keeps the same table (`append_only.COURSE`).
CARD_TRANSITIONS: dict[CardStatus, frozenset[CardStatus]] = {
    CardStatus.OPEN: frozenset({CardStatus.ASSIGNED}) | _SETTLING,
    CardStatus.ASSIGNED: frozenset({CardStatus.ASSIGNED, CardStatus.OPEN}) | _SETTLING,
    CardStatus.DECIDED: frozenset(),
    CardStatus.EXPIRED: frozenset(),
    CardStatus.WITHDRAWN: frozenset(),
}


WAITING = (CardStatus.OPEN, CardStatus.ASSIGNED)
_WAITS = Q(status__in=WAITING)


class Card(TenantModel):
    """Something a person is asked to decide (spec 0.5.3). `payload` is what the yes binds; the rest explains it.

    What it says never changes. Its course does: status, who sees to it, when and why it was settled.
    """

    kind = models.CharField(max_length=24, choices=CardKind.choices)
    risk = models.CharField(max_length=16, choices=Risk.choices)
    intent = models.CharField(max_length=300)
    rationale = models.TextField()
    consequence = models.JSONField(help_text="What each button does, by its answer")
    affected = models.CharField(max_length=300, blank=True)
    facts = models.JSONField(default=list)
    body = models.JSONField(default=dict, help_text="What this kind of card shows beside its payload")
    details = models.JSONField(default=dict)
    reads = models.JSONField(default=list, help_text="The records whose state it shows: book, key, revision (0: none)")
    payload = models.JSONField()
    payload_hash = models.CharField(max_length=64)
    scope = models.CharField(max_length=24, choices=ApprovalScope.choices)
    max_executions = models.PositiveIntegerField(default=1)
    token_seconds = models.PositiveIntegerField(help_text="How long a yes stays valid after the decision")
    subject_kind = models.CharField(max_length=24)
    subject_id = models.UUIDField()
    deployment = models.ForeignKey("tenants.Deployment", on_delete=models.PROTECT, null=True, related_name="+")
    session_id = models.UUIDField(null=True)
    requested_by = models.CharField(max_length=80, blank=True, help_text="`user:<id>` when a member asked for this")
    supersedes = models.OneToOneField("self", on_delete=models.PROTECT, null=True, related_name="successor")
    status = models.CharField(max_length=16, choices=CardStatus.choices, default=CardStatus.OPEN)
    assignee = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, null=True, related_name="+")
    created_at = models.DateTimeField()
    assigned_at = models.DateTimeField(null=True)
    expires_at = models.DateTimeField()
    settled_at = models.DateTimeField(null=True)
    withdrawal = models.CharField(max_length=16, choices=Withdrawal.choices, blank=True)

    class Meta(TenantModel.Meta):
        ordering: ClassVar = ["created_at"]
        constraints: ClassVar = [
            models.CheckConstraint(condition=Q(expires_at__gt=F("created_at")), name="card_ends_after_it_begins"),
            models.UniqueConstraint(
                fields=["subject_kind", "subject_id"], condition=_WAITS, name="card_open_once_per_subject"
            ),
            models.CheckConstraint(
                condition=~Q(status__in=WAITING)
                | Q(status=CardStatus.OPEN, assignee=None, assigned_at=None)
                | Q(status=CardStatus.ASSIGNED, assignee__isnull=False, assigned_at__isnull=False),
                name="card_assigned_to_somebody",
            ),
            models.CheckConstraint(
                condition=(_WAITS & Q(settled_at=None)) | (~_WAITS & Q(settled_at__isnull=False)),
                name="card_settled_at_a_moment",
            ),
            models.CheckConstraint(
                condition=Q(status=CardStatus.WITHDRAWN) ^ Q(withdrawal=""), name="card_withdrawn_for_a_reason"
            ),
        ]
        indexes: ClassVar = [models.Index(fields=["tenant", "status", "created_at"], name="card_queue")]

    def __str__(self) -> str:
        return self.intent

    @property
    def is_open(self) -> bool:
        """Can somebody still answer? What ran out a moment ago is closed a moment later."""
        return self.status in WAITING and self.expires_at > now()


class Decision(TenantModel):
    """What a person answered. One card is answered once."""

    card = models.OneToOneField(Card, on_delete=models.PROTECT, related_name="decision")
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    verdict = models.CharField(max_length=16, choices=ApprovalVerdict.choices)
    approval_strength = models.CharField(max_length=24, choices=ApprovalStrength.choices, default=ApprovalStrength.TAP)
    conditions = models.JSONField(default=dict)
    said = models.JSONField(default=dict, help_text="The answer chosen, and what was said or ticked with it")
    decided_at = models.DateTimeField()

    class Meta(TenantModel.Meta):
        indexes: ClassVar = [models.Index(fields=["tenant", "decided_at"], name="decision_by_time")]

    def __str__(self) -> str:
        return self.verdict


class Answer(TenantModel):
    """What one person said to a card; a decision is what the answers come to. A yes is signed with that person's key.

    `step_up` is the passkey's assertion with everything that is needed to check it again later.
    """

    card = models.ForeignKey(Card, on_delete=models.PROTECT, related_name="answers")
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    verdict = models.CharField(max_length=16, choices=ApprovalVerdict.choices)
    approval_strength = models.CharField(max_length=24, choices=ApprovalStrength.choices, default=ApprovalStrength.TAP)
    conditions = models.JSONField(default=dict)
    said = models.JSONField(default=dict, help_text="The answer chosen, and what was said or ticked with it")
    answered_at = models.DateTimeField()
    step_up = models.JSONField(null=True)
    key_id = models.CharField(max_length=16, blank=True)
    signature = models.CharField(max_length=120, blank=True, help_text="Ed25519, base64")

    class Meta(TenantModel.Meta):
        ordering: ClassVar = ["answered_at"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["card", "user", "verdict"], name="answer_once_a_person")
        ]

    def __str__(self) -> str:
        return self.verdict
