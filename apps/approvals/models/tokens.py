"""Models of signed approvals, their uses and revocations. The database refuses to change or delete them.

How often a token was used is counted from the ledger of uses by its signed nonce, so that nothing written on the
token's own row can reset it."""

from __future__ import annotations

from typing import ClassVar

from django.conf import settings
from django.db import models
from django.db.models import F, Q

from apps.approvals.enums import ApprovalScope, ApprovalStrength, ApprovalVerdict
from apps.approvals.models.cards import Decision
from kernel.language import gettext_lazy as _
from kernel.tenancy import TenantModel


class ApprovalToken(TenantModel):
    """A signed approval of one content hash (spec 5.11). `id` is the contract's unsigned `token_id`."""

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
    signature = models.CharField(max_length=120, help_text=_("Ed25519, base64"))
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


class TokenRevocation(TenantModel):
    """The revocation of an approval: from now on it authorizes nothing. `reason` is for people and stays on this
    row."""

    token = models.OneToOneField(ApprovalToken, on_delete=models.PROTECT, related_name="revocation")
    token_nonce = models.CharField(max_length=64, unique=True)
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    reason = models.CharField(max_length=300)
    revoked_at = models.DateTimeField()

    def __str__(self) -> str:
        return self.reason
