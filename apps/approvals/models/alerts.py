"""Models of alerts: what a member chose, and the browsers that receive pushes."""

from __future__ import annotations

from datetime import datetime
from typing import ClassVar
from uuid import UUID

from django.conf import settings
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models import Q

from apps.approvals.cards.quiet_hours import QuietHours
from apps.approvals.enums import AlertWay
from kernel.tenancy import TenantModel
from kernel.timezones import get_timezone

MIN_MINUTES, MAX_MINUTES = 1, 1440


class AlertChoice(TenantModel):
    """How one member is alerted of cards while away and hears of news in an open console, their quiet hours, and up to
    which card they were alerted.

    `pushed` names the cards pushed last, because a card that was committed late is older than `pushed_until` and has
    not been pushed. E-mails have covered cards up to `mailed_until`.
    """

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    way = models.CharField(max_length=8, choices=AlertWay.choices, default=AlertWay.OFF)
    minutes = models.PositiveSmallIntegerField(
        default=10, validators=[MinValueValidator(MIN_MINUTES), MaxValueValidator(MAX_MINUTES)]
    )
    pushed_until = models.DateTimeField()
    pushed: models.JSONField[list[str], list[str]] = models.JSONField(default=list)
    mailed_until = models.DateTimeField()
    mailed_at: models.DateTimeField[datetime | None, datetime | None] = models.DateTimeField(null=True)

    sound = models.BooleanField(default=False, db_default=False)
    desktop = models.BooleanField(default=False, db_default=False)
    # `QuietHours.as_json`
    quiet_hours: models.JSONField[dict[str, object] | None, dict[str, object] | None] = models.JSONField(null=True)

    user_id: UUID

    class Meta(TenantModel.Meta):
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["tenant", "user"], name="alert_choice_once"),
            models.CheckConstraint(condition=Q(minutes__range=(MIN_MINUTES, MAX_MINUTES)), name="alert_choice_minutes"),
        ]

    def quiet_until(self, moment: datetime) -> datetime | None:
        """When the member's quiet hours end; None outside of them."""
        if self.quiet_hours is None:
            return None
        return QuietHours.from_json(self.quiet_hours).end_at(moment, get_timezone(self.tenant.timezone))


class PushSubscription(TenantModel):
    """A browser that receives pushes: the address at its push service, which is a secret in itself, and its keys, which
    only that browser can decrypt with (RFC 8291)."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    endpoint = models.CharField(max_length=500)
    endpoint_hash = models.CharField(max_length=64)
    p256dh = models.CharField(max_length=100)
    auth = models.CharField(max_length=40)
    browser = models.CharField(max_length=80, blank=True)
    created_at = models.DateTimeField()

    user_id: UUID

    class Meta(TenantModel.Meta):
        ordering: ClassVar = ["created_at"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["tenant", "endpoint_hash"], name="push_subscription_once")
        ]
