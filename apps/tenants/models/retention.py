"""How long a company keeps conversations, memories and messages."""

from __future__ import annotations

from typing import ClassVar

from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models import Q

from kernel.language import gettext_lazy as _
from kernel.tenancy import TenantModel

MOST_DAYS = 3650
_PARTS = ("conversation_days", "memory_days", "message_days", "skill_days")


def _days(title: str, help_text: str) -> models.PositiveSmallIntegerField[int | None, int | None]:
    bounds = [MinValueValidator(1), MaxValueValidator(MOST_DAYS)]
    return models.PositiveSmallIntegerField(title, null=True, blank=True, validators=bounds, help_text=help_text)


def _within(name: str) -> Q:
    return Q(**{f"{name}__isnull": True}) | Q(**{f"{name}__gte": 1, f"{name}__lte": MOST_DAYS})


class Retention(TenantModel):
    """Days after which data is deleted; one row per tenant. Empty fields use the settings of the installation. The
    audit log is never deleted."""

    conversation_days = _days(
        "conversations, in days",
        "After so many days without a word the texts of a conversation are forgotten. Empty: never",
    )
    memory_days = _days(
        "memory, in days", "After so many days a memory is deleted. Empty: as this installation has it for all"
    )
    message_days = _days(
        "queue messages, in days", "After so many days a message that was done with is deleted. Empty: the same"
    )
    skill_days = _days(
        "drafts of skills and waiting packages, in days",
        "After so many days without a change a draft of a skill is deleted, and a package that nobody looked at is "
        "refused. Empty: never",
    )

    class Meta(TenantModel.Meta):
        verbose_name = _("retention")
        verbose_name_plural = _("retention")
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["tenant"], name="retention_once"),
            *(models.CheckConstraint(condition=_within(name), name=f"retention_{name}") for name in _PARTS),
        ]

    def __str__(self) -> str:
        return "Retention"
