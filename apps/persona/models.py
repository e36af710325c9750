"""The personality of a deployment, and the log of what moved it (spec 5.15)."""

from __future__ import annotations

from datetime import datetime
from typing import ClassVar
from uuid import UUID

from django.db import models
from django.db.models.functions import Now

from apps.persona.enums import EventSource, EventType, Preset
from kernel.tenancy import TenantModel


class PersonaState(TenantModel):
    """The baseline of one deployment. A deployment without a row, or with the preset `off`, has its free text only. The
    mood belongs to a conversation and is stored with it."""

    deployment = models.OneToOneField("tenants.Deployment", on_delete=models.PROTECT, related_name="+")
    baseline_axes: models.JSONField[dict[str, float], dict[str, float]] = models.JSONField(default=dict)
    active_preset = models.CharField(max_length=12, choices=Preset.choices, default=Preset.OFF)
    updated_at: models.DateTimeField[datetime, datetime] = models.DateTimeField(db_default=Now())

    deployment_id: UUID


class PersonaEvent(TenantModel):
    """One event, in a table that a trigger makes append-only. Deltas are as applied, after bounds."""

    deployment = models.ForeignKey("tenants.Deployment", on_delete=models.PROTECT, related_name="+")
    session_id: models.UUIDField[UUID | None, UUID | None] = models.UUIDField(null=True)
    event_type = models.CharField(max_length=16, choices=EventType.choices)
    trusted = models.BooleanField()
    delta_axes: models.JSONField[dict[str, float], dict[str, float]] = models.JSONField(default=dict)
    delta_mood: models.JSONField[dict[str, float], dict[str, float]] = models.JSONField(default=dict)
    source = models.CharField(max_length=16, choices=EventSource.choices)
    created_at = models.DateTimeField(db_default=Now())

    class Meta(TenantModel.Meta):
        indexes: ClassVar = [
            models.Index(fields=["tenant", "deployment", "-created_at"], name="persona_event_by_age"),
        ]
