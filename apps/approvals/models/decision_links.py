"""Model of links to a page on which one member decides one card with a passkey."""

from __future__ import annotations

from datetime import timedelta
from typing import ClassVar

from django.conf import settings
from django.db import models
from django.db.models import F, Q

from kernel.tenancy import TenantModel

LONGEST = timedelta(hours=1)


class DecisionLink(TenantModel):
    """A link for `user` to decide `card`, once. Only the hash of its secret is stored; `face_hash` is the hash of what
    the card showed when the link was created. A link authorizes nothing: the member's passkey does (ADR 124)."""

    card = models.ForeignKey("approvals.Card", on_delete=models.PROTECT, related_name="+")
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    face_hash = models.CharField(max_length=64)
    hashed = models.CharField(max_length=64, unique=True)
    created_at = models.DateTimeField()
    expires_at = models.DateTimeField()
    spent_at = models.DateTimeField(null=True)

    class Meta(TenantModel.Meta):
        ordering: ClassVar = ["created_at"]
        constraints: ClassVar = [
            models.CheckConstraint(
                condition=Q(expires_at__gt=F("created_at")) & Q(expires_at__lte=F("created_at") + LONGEST),
                name="decision_link_lasts_an_hour_at_most",
            )
        ]

    def __str__(self) -> str:
        return str(self.pk)
