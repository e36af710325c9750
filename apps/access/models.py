"""Access levels of a deployment, and the nonces of signed messages.

The models keep the label `silas_sessions`, under which their tables and migrations were made.
"""

from __future__ import annotations

from typing import ClassVar

from django.db import models
from django.db.models import Q

from apps.access.rules import PUBLIC
from kernel.language import gettext_lazy as _
from kernel.tenancy import TenantModel


class AccessLevel(TenantModel):
    """What a visitor of a deployment reaches at one level, where the active goal has no levels of its own (spec 5.6).
    `public` needs nothing; every other level needs gates, and the later one in order is the higher."""

    deployment = models.ForeignKey("tenants.Deployment", on_delete=models.CASCADE, related_name="+")
    name = models.SlugField(max_length=40)
    order = models.PositiveSmallIntegerField(default=0, help_text=_("The higher of two has the larger number"))
    description = models.CharField(max_length=200, blank=True)
    tools: models.JSONField[list[str], list[str]] = models.JSONField(default=list, blank=True)
    requires: models.JSONField[list[str], list[str]] = models.JSONField(default=list, blank=True)
    expires_after = models.PositiveIntegerField(
        _("ends after"), null=True, blank=True, help_text=_("Seconds; empty: with the conversation")
    )

    class Meta(TenantModel.Meta):
        app_label = "silas_sessions"
        ordering: ClassVar = ["deployment", "order"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["deployment", "name"], name="access_level_once"),
            models.UniqueConstraint(fields=["deployment", "order"], name="access_level_in_order"),
            models.CheckConstraint(
                condition=Q(name=PUBLIC, requires=[], expires_after=None) | (~Q(name=PUBLIC) & ~Q(requires=[])),
                name="access_level_is_earned",
            ),
            models.CheckConstraint(condition=~Q(expires_after=0), name="access_level_lasts"),
        ]

    def __str__(self) -> str:
        return self.name


class MessageNonce(TenantModel):
    """A signed message that was stored, by its nonce: the next one with it is a replay. Kept for as long as its
    signature could be fresh, and a while."""

    key_id = models.CharField(max_length=60)
    nonce = models.CharField(max_length=64)
    seen_at = models.DateTimeField()

    class Meta(TenantModel.Meta):
        app_label = "silas_sessions"
        constraints: ClassVar = [models.UniqueConstraint(fields=["tenant", "key_id", "nonce"], name="nonce_seen_once")]
        indexes: ClassVar = [models.Index(fields=["tenant", "seen_at"], name="nonce_by_age")]
