"""What was handed in to be read, and how far is it? One row for each file, text, address or second reading.

The bytes stand in the row until they are read and are gone afterwards: a document's text is kept in its versions.
"""

from __future__ import annotations

from datetime import datetime
from typing import ClassVar
from uuid import UUID

from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from apps.memory.enums import IntakeKind, IntakeState
from apps.memory.models import Collection
from kernel.tenancy import TenantModel


class Intake(TenantModel):
    """`name` is what people called it, `reference` what its document is known by; `done` of `total` pages are read,
    `stored` is how many documents came of it. `once`: the same form sent twice is one row."""

    collection = models.ForeignKey(Collection, on_delete=models.CASCADE, related_name="+")
    kind = models.CharField(max_length=10, choices=IntakeKind.choices)
    name = models.CharField(max_length=300)
    reference = models.CharField(max_length=700)
    content: models.BinaryField[bytes | None, bytes | None] = models.BinaryField(null=True)
    document_id: models.UUIDField[UUID | None, UUID | None] = models.UUIDField(null=True)
    state = models.CharField(max_length=10, choices=IntakeState.choices, default=IntakeState.WAITING)
    done = models.PositiveIntegerField(default=0)
    total = models.PositiveIntegerField(default=0)
    stored = models.PositiveIntegerField(default=0)
    problems: models.JSONField[list[list[str]], list[list[str]]] = models.JSONField(default=list)
    by = models.CharField(max_length=60)
    once = models.UUIDField()
    attempts = models.PositiveSmallIntegerField(default=0)
    due_at = models.DateTimeField(db_default=Now())
    created_at = models.DateTimeField(db_default=Now())
    ended_at: models.DateTimeField[datetime | None, datetime | None] = models.DateTimeField(null=True)

    collection_id: UUID

    class Meta(TenantModel.Meta):
        ordering: ClassVar = ["-created_at"]
        constraints: ClassVar = [models.UniqueConstraint(fields=["tenant", "once"], name="memory_intake_once")]
        indexes: ClassVar = [
            models.Index(fields=["due_at"], name="memory_intake_due", condition=Q(state__in=["waiting", "running"]))
        ]

    def __str__(self) -> str:
        return self.name
