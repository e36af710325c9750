"""Models of approvers' signing keys and passkeys. An approver has one active Ed25519 key in a tenant.

The installation key certifies each key (`certificate`), so a forged row is not a valid key (ADR 99). A member's first
key is registered once, each later one names its predecessor. A retired key has no private half any more. Passkeys and
their answers are never deleted.
"""

from __future__ import annotations

from typing import ClassVar

from django.conf import settings
from django.db import models
from django.db.models import F, Q

from apps.approvals.enums import ACTION_PURPOSES, CARD_PURPOSES, ChallengePurpose
from kernel.language import gettext_lazy as _
from kernel.tenancy import TenantModel


class ApproverKey(TenantModel):
    """One approver's key. The private half is sealed with the signing key and deleted when the key is retired.

    From `retired_at` it signs nothing, but what it signed before is valid. Once `revoked_at` is set, nothing that it
    signed is valid.
    """

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    key_id = models.CharField(max_length=16, unique=True)
    public_key = models.CharField(max_length=64)
    sealed_private = models.BinaryField()
    created_at = models.DateTimeField()
    previous = models.OneToOneField("self", on_delete=models.PROTECT, null=True, related_name="next")
    certificate = models.CharField(max_length=120, blank=True, help_text=_("Signature of the installation key, base64"))
    retired_at = models.DateTimeField(null=True)
    revoked_at = models.DateTimeField(null=True)

    class Meta(TenantModel.Meta):
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["tenant", "user"], condition=Q(retired_at=None), name="approver_key_active_once"
            ),
            models.UniqueConstraint(
                fields=["tenant", "user"], condition=Q(previous=None), name="approver_key_first_once"
            ),
            models.CheckConstraint(
                condition=Q(revoked_at=None) | Q(retired_at__isnull=False), name="approver_key_revoked_is_retired"
            ),
        ]

    def __str__(self) -> str:
        return self.key_id


class Passkey(TenantModel):
    """A WebAuthn credential of one person for one domain name (`rp_id`). Removed ones stay, as evidence for what they
    signed."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    name = models.CharField(max_length=60)
    credential_id = models.CharField(max_length=1400, help_text=_("base64url"))
    public_key = models.BinaryField(help_text=_("COSE"))
    rp_id = models.CharField(max_length=253)
    transports = models.JSONField(default=list)
    sign_count = models.BigIntegerField(default=0)
    created_at = models.DateTimeField()
    last_used_at = models.DateTimeField(null=True)
    removed_at = models.DateTimeField(null=True)

    class Meta(TenantModel.Meta):
        ordering: ClassVar = ["created_at"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["tenant", "credential_id"], name="passkey_once"),
        ]

    def __str__(self) -> str:
        return self.name


class PasskeyChallenge(TenantModel):
    """A challenge that a passkey may sign once, within minutes: to be registered, for one card, or for one action
    about a `subject` that is not a card. `payload_hash` is the hash of what the card or subject shows.

    The challenge itself is not stored: it is the hash of this row's values (`rules.challenge_bytes`).
    """

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    purpose = models.CharField(max_length=16, choices=ChallengePurpose.choices)
    card = models.ForeignKey("approvals.Card", on_delete=models.PROTECT, null=True, related_name="+")
    subject = models.CharField(max_length=80, blank=True)
    payload_hash = models.CharField(max_length=64, blank=True)
    nonce = models.CharField(max_length=64)
    rp_id = models.CharField(max_length=253)
    origin = models.CharField(max_length=300)
    created_at = models.DateTimeField()
    expires_at = models.DateTimeField()
    spent_at = models.DateTimeField(null=True)

    class Meta(TenantModel.Meta):
        constraints: ClassVar = [
            models.CheckConstraint(condition=Q(expires_at__gt=F("created_at")), name="challenge_ends_after_it_begins"),
            models.CheckConstraint(
                condition=Q(purpose=ChallengePurpose.REGISTER, card=None, subject="")
                | Q(purpose__in=CARD_PURPOSES, card__isnull=False, subject="")
                | (Q(purpose__in=ACTION_PURPOSES, card=None) & ~Q(subject="") & ~Q(payload_hash="")),
                name="challenge_fits_its_purpose",
            ),
        ]

    def __str__(self) -> str:
        return self.purpose
