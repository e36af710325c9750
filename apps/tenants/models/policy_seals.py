"""The tenant's active policy as certified by the installation key: one signed list for each kind of policy."""

from __future__ import annotations

from datetime import datetime
from typing import ClassVar

from django.db import models

from apps.tenants.enums import PolicyKind
from kernel.tenancy import TenantModel


class PolicySeal(TenantModel):
    """One signed list. `items` is canonical JSON: the hash of each active item by its name. `version` only rises.
    `signature` is the installation key's over tenant, kind, version and items (apps.tenants.policy_seals)."""

    kind = models.CharField(max_length=16, choices=PolicyKind.choices)
    version = models.PositiveIntegerField()
    items = models.TextField()
    signature = models.CharField(max_length=120)
    sealed_at: models.DateTimeField[datetime, datetime] = models.DateTimeField()

    class Meta(TenantModel.Meta):
        constraints: ClassVar = [models.UniqueConstraint(fields=["tenant", "kind"], name="policy_seal_once")]

    def __str__(self) -> str:
        return f"{self.kind} {self.version}"
