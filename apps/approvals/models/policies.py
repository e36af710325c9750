"""Model of what a tenant requires of approvals. Administrators edit the rows; the most specific one applies to a
card."""

from __future__ import annotations

from typing import ClassVar

from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models import Q

from apps.approvals.enums import ApprovalScope, Deciders, PasskeyRule, Risk
from kernel.language import gettext_lazy as _
from kernel.tenancy import TenantModel

MOST_PEOPLE = 5


class ApprovalPolicy(TenantModel):
    """Who may approve cards of this scope and risk, how many people must, and whether they need a passkey. Blank means
    all."""

    scope = models.CharField(
        max_length=24, choices=ApprovalScope.choices, blank=True, help_text=_("Blank: every scope")
    )
    risk = models.CharField(max_length=16, choices=Risk.choices, blank=True, help_text=_("Blank: every risk"))
    who = models.CharField(max_length=16, choices=Deciders.choices, default=Deciders.APPROVERS)
    people = models.PositiveSmallIntegerField(
        default=1,
        validators=[MinValueValidator(1), MaxValueValidator(MOST_PEOPLE)],
        help_text=_("How many different people have to approve"),
    )
    passkey = models.CharField(max_length=16, choices=PasskeyRule.choices, default=PasskeyRule.REGISTERED)
    own_requests = models.BooleanField(
        default=False, help_text=_("May people approve what they, or an agent acting for them, asked for?")
    )

    class Meta(TenantModel.Meta):
        verbose_name_plural = _("approval policies")
        ordering: ClassVar = ["scope", "risk"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["tenant", "scope", "risk"], name="approval_policy_once"),
            models.CheckConstraint(condition=Q(people__range=(1, MOST_PEOPLE)), name="approval_policy_people"),
        ]

    def __str__(self) -> str:
        return f"{self.get_scope_display() or 'Every scope'}, {self.get_risk_display() or 'every risk'}"
