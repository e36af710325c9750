"""Data keys with which a tenant's secrets are sealed; one is active at a time."""

from __future__ import annotations

from typing import ClassVar

from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from kernel.tenancy import TenantModel


class DataKey(TenantModel):
    """A data key. `wrapped` opens with the installation key that `master` identifies. A retired key still opens what it
    sealed."""

    number = models.PositiveIntegerField()
    wrapped = models.BinaryField()
    master = models.CharField(max_length=16)
    created_at = models.DateTimeField(db_default=Now())
    retired_at = models.DateTimeField(null=True, blank=True)

    class Meta(TenantModel.Meta):
        ordering: ClassVar = ["-number"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["tenant", "number"], name="data_key_number_once"),
            models.UniqueConstraint(fields=["tenant"], condition=Q(retired_at=None), name="data_key_active_once"),
        ]

    def __str__(self) -> str:
        return f"data key {self.number}"
