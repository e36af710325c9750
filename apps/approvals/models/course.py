"""How long does a card wait, and who has seen it when? Beside the card, so that what it says stays untouched."""

from __future__ import annotations

from typing import ClassVar

from django.conf import settings
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models import Q

from apps.approvals.enums import Pace
from apps.approvals.models.cards import Card
from kernel.tenancy import TenantModel

SHORTEST, LONGEST = 10, 30 * 86_400


class CardTiming(TenantModel):
    """How long this tenant's cards wait before silence is a no. A deployment's own row goes before the tenant's."""

    deployment = models.ForeignKey(
        "tenants.Deployment", on_delete=models.CASCADE, null=True, blank=True, help_text="Blank: all", related_name="+"
    )
    pace = models.CharField(max_length=8, choices=Pace.choices)
    seconds = models.PositiveIntegerField(validators=[MinValueValidator(SHORTEST), MaxValueValidator(LONGEST)])

    class Meta(TenantModel.Meta):
        ordering: ClassVar = ["pace"]
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["tenant", "deployment", "pace"], name="card_timing_once", nulls_distinct=False
            ),
            models.CheckConstraint(condition=Q(seconds__range=(SHORTEST, LONGEST)), name="card_timing_range"),
        ]

    def __str__(self) -> str:
        return f"{self.get_pace_display()}: {self.seconds} s"


class Look(TenantModel):
    """When somebody who may decide first had a card before them; with the decision it gives the time it took."""

    card = models.ForeignKey(Card, on_delete=models.PROTECT, related_name="looks")
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    first_at = models.DateTimeField()

    class Meta(TenantModel.Meta):
        ordering: ClassVar = ["first_at"]
        constraints: ClassVar = [models.UniqueConstraint(fields=["card", "user"], name="look_once_a_person")]

    def __str__(self) -> str:
        return f"{self.card_id} {self.first_at:%H:%M:%S}"
