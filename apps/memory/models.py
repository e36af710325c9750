"""What may be recalled: memories. A memory has a scope and keeps it, its taint never drops, what is raw stays as it was
said, and nothing external is ever trusted (constraints and a trigger)."""

from __future__ import annotations

from typing import Any, ClassVar
from uuid import UUID

from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.search import SearchVector, SearchVectorField
from django.db import models
from django.db.models import Q
from pgvector.django import VectorField

from apps.memory.enums import MergeReason, SourceKind, Tier, Trust
from kernel.taint import Taint
from kernel.tenancy import TenantModel
from llm.embedding import DIMENSIONS
from llm.enums import MemoryType


class MemoryItem(TenantModel):
    """A memory of a conversation, a customer or the company (contract silas 10).

    `scope` says whose it is (`schemas.Scope`); every read names one. `reference` says what it came from and is unique
    in its scope. `links` are `{"to": id, "type": word}`. `marked`: its author had read instructions to the assistant,
    so a turn that recalls it is marked too (ADR 107).
    """

    scope = models.CharField(max_length=140)
    content = models.TextField()
    memory_type = models.CharField(max_length=12, choices=[(each.value, each.value) for each in MemoryType])
    tier = models.CharField(max_length=16, choices=Tier.choices, default=Tier.ACTIVE)
    trust = models.CharField(max_length=16, choices=Trust.choices, default=Trust.WORKING)
    taint = models.CharField(max_length=8, choices=[(each.value, each.value) for each in Taint])
    source_kind = models.CharField(max_length=20, choices=SourceKind.choices)
    reference = models.CharField(max_length=80)
    session_id: models.UUIDField[UUID | None, UUID | None] = models.UUIDField(null=True)
    created_at = models.DateTimeField()
    updated_at = models.DateTimeField()
    valid_until = models.DateTimeField(null=True)
    tags = ArrayField(models.CharField(max_length=60), default=list)
    entity_refs = ArrayField(models.CharField(max_length=120), default=list)
    links: models.JSONField[list[Any], list[Any]] = models.JSONField(default=list)
    marked = models.BooleanField(default=False, db_default=False)
    embedding = VectorField(dimensions=DIMENSIONS, null=True)
    words = models.GeneratedField(
        expression=SearchVector("content", config="english"), output_field=SearchVectorField(), db_persist=True
    )

    class Meta(TenantModel.Meta):
        ordering: ClassVar = ["-created_at"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["tenant", "scope", "reference"], name="memory_item_once"),
            models.CheckConstraint(
                condition=Q(scope__regex=r"^(conversation|customer|tenant):."), name="memory_item_has_scope"
            ),
            models.CheckConstraint(condition=~Q(content="") & ~Q(reference=""), name="memory_item_says_something"),
            models.CheckConstraint(
                condition=Q(trust=Trust.WORKING) | ~Q(taint=Taint.EXTERNAL.value),
                name="memory_nothing_external_trusted",
            ),
            models.CheckConstraint(
                condition=~Q(scope__startswith="tenant:") | ~Q(taint=Taint.EXTERNAL.value),
                name="memory_nothing_external_for_all",
            ),
        ]
        indexes: ClassVar = [
            models.Index(fields=["tenant", "scope", "tier", "-created_at"], name="memory_item_by_scope"),
            models.Index(fields=["tenant", "valid_until"], name="memory_item_by_end"),
            models.Index(fields=["tenant", "created_at"], name="memory_item_by_age"),
        ]


class MemoryConsolidation(TenantModel):
    """One memory that was merged into another and deleted (spec 6.4).

    Holds ids only, no text, so that it outlives a forgotten visitor without saying anything about them. `taint_before`
    is the merged memory's, `taint_after` the kept one's.
    """

    merged_id = models.UUIDField()
    kept_id = models.UUIDField()
    reason = models.CharField(max_length=20, choices=MergeReason.choices)
    taint_before = models.CharField(max_length=8, choices=[(each.value, each.value) for each in Taint])
    taint_after = models.CharField(max_length=8, choices=[(each.value, each.value) for each in Taint])
    created_at = models.DateTimeField()

    class Meta(TenantModel.Meta):
        ordering: ClassVar = ["-created_at"]
        constraints: ClassVar = [models.UniqueConstraint(fields=["tenant", "merged_id"], name="memory_merged_once")]
        indexes: ClassVar = [models.Index(fields=["tenant", "created_at"], name="memory_merged_by_age")]
