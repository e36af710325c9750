"""Imports of what another help desk exported, and the parts of them that were read and not applied yet."""

from __future__ import annotations

from datetime import datetime
from typing import Any, ClassVar
from uuid import UUID

from django.db import models
from django.db.models.functions import Length, Now
from django.db.models.lookups import LessThanOrEqual

from apps.imports.enums import RunState, System
from kernel.tenancy import TenantModel


class ImportRun(TenantModel):
    """One file of an export. Its bytes are deleted when it ends. `counts`: by kind of record and outcome how many;
    `problems`: the first lines that were skipped, as `[line, reason]`. A dry run writes nothing but this."""

    system = models.CharField(max_length=10, choices=System.choices)
    name = models.CharField(max_length=200)
    dry_run = models.BooleanField()
    content: models.BinaryField[bytes | None, bytes | None] = models.BinaryField(null=True)
    state = models.CharField(max_length=8, choices=RunState.choices, default=RunState.RUNNING)
    counts: models.JSONField[dict[str, dict[str, int]], dict[str, dict[str, int]]] = models.JSONField(default=dict)
    problems: models.JSONField[list[list[Any]], list[list[Any]]] = models.JSONField(default=list)
    by = models.CharField(max_length=80)
    once = models.UUIDField()
    created_at = models.DateTimeField(db_default=Now())
    ended_at: models.DateTimeField[datetime | None, datetime | None] = models.DateTimeField(null=True)

    class Meta(TenantModel.Meta):
        ordering: ClassVar = ["-created_at"]
        constraints: ClassVar = [models.UniqueConstraint(fields=["tenant", "once"], name="import_run_once")]

    def __str__(self) -> str:
        return self.name


class ImportPart(TenantModel):
    """Some records of a file that a worker read: `found` is JSON, validated again before it is applied. Workers may
    only insert rows."""

    run = models.ForeignKey(ImportRun, on_delete=models.CASCADE, related_name="+", db_index=False)
    number = models.PositiveIntegerField()
    found = models.TextField()

    run_id: UUID

    class Meta(TenantModel.Meta):
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["run", "number"], name="import_part_once"),
            models.CheckConstraint(
                condition=LessThanOrEqual(Length("found"), 20_000_000), name="import_part_is_bounded"
            ),
        ]
