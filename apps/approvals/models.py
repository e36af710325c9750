"""Who said yes, to exactly what: approvers' keys, cards, decisions, approval tokens and the ledger of their uses.

Decisions, tokens and uses are facts: the database refuses to change or delete them. How often a token was
used is counted from the ledger by its signed nonce, so nothing written on the token's own row can reset it.
"""

from __future__ import annotations

from typing import ClassVar

from django.conf import settings
from django.db import models
from django.db.models import F, Q

from apps.approvals.enums import ApprovalScope, ApprovalStrength, ApprovalVerdict, CardKind, CardStatus, Risk
from kernel.tenancy import TenantModel

CARD_TRANSITIONS: dict[CardStatus, frozenset[CardStatus]] = {
    CardStatus.OPEN: frozenset({CardStatus.DECIDED, CardStatus.EXPIRED, CardStatus.WITHDRAWN}),
    CardStatus.DECIDED: frozenset(),
    CardStatus.EXPIRED: frozenset(),
    CardStatus.WITHDRAWN: frozenset(),
}


class ApproverKey(TenantModel):
    """One approver's Ed25519 key in one tenant. The private half is sealed with the signing key."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    key_id = models.CharField(max_length=16, unique=True)
    public_key = models.CharField(max_length=64)
    sealed_private = models.BinaryField()
    created_at = models.DateTimeField()

    class Meta(TenantModel.Meta):
        constraints: ClassVar = [models.UniqueConstraint(fields=["tenant", "user"], name="approver_key_once")]

    def __str__(self) -> str:
        return self.key_id


class Card(TenantModel):
    """Something a person is asked to decide (spec 0.5.3). `payload` is what the yes binds; the rest explains it."""

    kind = models.CharField(max_length=20, choices=CardKind.choices)
    risk = models.CharField(max_length=16, choices=Risk.choices)
    intent = models.CharField(max_length=300)
    rationale = models.TextField()
    consequence = models.JSONField(help_text="What each button does: approve, decline")
    affected = models.CharField(max_length=300, blank=True)
    facts = models.JSONField(default=list)
    details = models.JSONField(default=dict)
    payload = models.JSONField()
    payload_hash = models.CharField(max_length=64)
    scope = models.CharField(max_length=24, choices=ApprovalScope.choices)
    max_executions = models.PositiveIntegerField(default=1)
    token_seconds = models.PositiveIntegerField(help_text="How long a yes stays valid after the decision")
    subject_kind = models.CharField(max_length=24)
    subject_id = models.UUIDField()
    deployment = models.ForeignKey("tenants.Deployment", on_delete=models.PROTECT, null=True, related_name="+")
    session_id = models.UUIDField(null=True)
    status = models.CharField(max_length=16, choices=CardStatus.choices, default=CardStatus.OPEN)
    created_at = models.DateTimeField()
    expires_at = models.DateTimeField()

    class Meta(TenantModel.Meta):
        ordering: ClassVar = ["created_at"]
        constraints: ClassVar = [
            models.CheckConstraint(condition=Q(expires_at__gt=F("created_at")), name="card_ends_after_it_begins"),
            models.UniqueConstraint(
                fields=["subject_kind", "subject_id"], condition=Q(status="open"), name="card_open_once_per_subject"
            ),
        ]
        indexes: ClassVar = [models.Index(fields=["tenant", "status", "created_at"], name="card_queue")]

    def __str__(self) -> str:
        return self.intent


class Decision(TenantModel):
    """What a person answered. One card is answered once."""

    card = models.OneToOneField(Card, on_delete=models.PROTECT, related_name="decision")
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    verdict = models.CharField(max_length=16, choices=ApprovalVerdict.choices)
    approval_strength = models.CharField(max_length=24, choices=ApprovalStrength.choices, default=ApprovalStrength.TAP)
    conditions = models.JSONField(default=dict)
    decided_at = models.DateTimeField()

    def __str__(self) -> str:
        return self.verdict


class ApprovalToken(TenantModel):
    """A signed yes to one content hash (spec 5.11). `id` is the contract's unsigned `token_id`."""

    plan_hash = models.CharField(max_length=64)
    work_item_id = models.CharField(max_length=64)
    scope = models.CharField(max_length=24, choices=ApprovalScope.choices)
    verdict = models.CharField(max_length=16, choices=ApprovalVerdict.choices)
    issued_at = models.DateTimeField()
    expires_at = models.DateTimeField()
    nonce = models.CharField(max_length=64, unique=True)
    approval_strength = models.CharField(max_length=24, choices=ApprovalStrength.choices, default=ApprovalStrength.TAP)
    conditions = models.JSONField(default=dict)
    max_executions = models.PositiveIntegerField(default=1)
    signature = models.CharField(max_length=120, help_text="Ed25519, base64")
    key_id = models.CharField(max_length=16)
    decision = models.OneToOneField(Decision, on_delete=models.PROTECT, related_name="token")

    class Meta(TenantModel.Meta):
        constraints: ClassVar = [
            models.CheckConstraint(condition=Q(expires_at__gt=F("issued_at")), name="token_ends_after_it_begins"),
            models.CheckConstraint(condition=Q(max_executions__gte=1), name="token_allows_at_least_one"),
        ]

    def __str__(self) -> str:
        return str(self.id)


class TokenUse(TenantModel):
    """One spent use: the `ordinal`-th of the token with this signed nonce, for exactly one content hash.

    `binding` is the bound replay key `token_id:hash:execution_nonce` (contract silas 8, gap 4).
    """

    token_nonce = models.CharField(max_length=64)
    ordinal = models.PositiveIntegerField()
    bound_hash = models.CharField(max_length=64)
    subject_id = models.CharField(max_length=64)
    binding = models.CharField(max_length=200, unique=True)
    used_at = models.DateTimeField()

    class Meta(TenantModel.Meta):
        ordering: ClassVar = ["token_nonce", "ordinal"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["token_nonce", "ordinal"], name="token_use_ordinal_once")
        ]

    def __str__(self) -> str:
        return f"{self.token_nonce} #{self.ordinal}"
