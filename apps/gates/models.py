"""Gates and their versions. A gate is a name in one deployment; its content is in its versions.

Versions are immutable (database triggers); at most one version of a gate is active. Written by `services.versions`
only; a turn reads all active gates at once."""

from __future__ import annotations

from datetime import datetime
from typing import Any, ClassVar
from uuid import UUID

from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Now

from apps.gates.enums import GateStatus
from apps.gates.schemas import GateSpec
from kernel.language import gettext_lazy as _
from kernel.tenancy import TenantModel


class Gate(TenantModel):
    """A gate of one deployment, or of all of them when `deployment` is empty (those run first)."""

    deployment = models.ForeignKey(
        "tenants.Deployment", on_delete=models.PROTECT, null=True, blank=True, related_name="+"
    )
    name = models.CharField(max_length=80)
    status = models.CharField(max_length=8, choices=GateStatus.choices, default=GateStatus.DRAFT)
    active: models.PositiveIntegerField[int | None, int | None] = models.PositiveIntegerField(
        _("active version"), null=True, blank=True
    )
    newest = models.PositiveIntegerField(_("newest version"), default=0)
    created_at: models.DateTimeField[datetime, datetime] = models.DateTimeField(db_default=Now())

    deployment_id: UUID | None

    class Meta(TenantModel.Meta):
        ordering: ClassVar = ["name"]
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["tenant", "deployment", "name"], name="gate_name_once", nulls_distinct=False
            ),
            models.CheckConstraint(
                condition=Q(status=GateStatus.ACTIVE, active__isnull=False)
                | (~Q(status=GateStatus.ACTIVE) & Q(active__isnull=True)),
                name="gate_in_force_has_version",
            ),
            models.CheckConstraint(
                condition=Q(active__isnull=True) | Q(active__lte=F("newest")), name="gate_version_exists"
            ),
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def draft(self) -> int | None:
        """The number of the newest version if it is not active."""
        return self.newest if self.newest != self.active else None


class GateVersion(TenantModel):
    """A version of a gate: all fields of `GateSpec` but the name, and its order among other gates. `restores` is the
    version whose content was rolled back to. `written_by` is an actor of the audit log."""

    gate = models.ForeignKey(Gate, on_delete=models.PROTECT, related_name="versions")
    number = models.PositiveIntegerField()
    order = models.PositiveSmallIntegerField(default=100)
    content: models.JSONField[dict[str, Any], dict[str, Any]] = models.JSONField()
    restores: models.PositiveIntegerField[int | None, int | None] = models.PositiveIntegerField(null=True)
    written_by = models.CharField(max_length=80)
    note = models.CharField(max_length=200, blank=True)
    created_at: models.DateTimeField[datetime, datetime] = models.DateTimeField(db_default=Now())

    class Meta(TenantModel.Meta):
        ordering: ClassVar = ["gate", "-number"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["gate", "number"], name="gate_version_once"),
            models.CheckConstraint(condition=Q(number__gte=1), name="gate_version_counts"),
        ]

    def __str__(self) -> str:
        return f"version {self.number}"

    def to_spec(self) -> GateSpec:
        """Raises pydantic's ValidationError for an invalid content."""
        return GateSpec(name=self.gate.name, **self.content)
