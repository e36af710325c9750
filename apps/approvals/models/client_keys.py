"""Model of the keys with which programs sign decisions: an approver's key that is bound to one API key."""

from __future__ import annotations

from typing import ClassVar

from django.conf import settings
from django.db import models

from apps.approvals.enums import Risk
from kernel.language import gettext_lazy as _
from kernel.tenancy import TenantModel


class ClientKey(TenantModel):
    """The public half of a program's Ed25519 key. The program keeps the private half; we never see it.

    It decides on behalf of `user`, with that member's role and as that one person, only in requests with `api_key`,
    and only cards of `scopes` up to `max_risk`. The installation key certifies all of that, so a forged or changed row
    is not a valid key (ADR 124).
    """

    api_key = models.ForeignKey("tenants.ApiKey", on_delete=models.PROTECT, related_name="+")
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    key_id = models.CharField(max_length=16, help_text=_("The first characters of the public key's SHA-256"))
    public_key = models.CharField(max_length=64, help_text=_("Ed25519, hexadecimal"))
    scopes: models.JSONField[list[str], list[str]] = models.JSONField()
    max_risk = models.CharField(max_length=16, choices=Risk.choices)
    created_at = models.DateTimeField()
    certificate = models.CharField(max_length=120, help_text=_("Signature of the installation key, base64"))
    revoked_at = models.DateTimeField(null=True)

    class Meta(TenantModel.Meta):
        ordering: ClassVar = ["created_at"]
        constraints: ClassVar = [models.UniqueConstraint(fields=["tenant", "key_id"], name="client_key_once")]

    def __str__(self) -> str:
        return self.key_id
