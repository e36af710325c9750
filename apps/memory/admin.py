"""Memories in Django admin, to view. They are deleted in the console, by customer or conversation."""

from __future__ import annotations

from django.contrib import admin

from apps.audit.admin_base import ReadOnlyAdmin
from apps.memory.models import (
    MemoryConsolidation,
    MemoryEntity,
    MemoryItem,
    MemoryQuestion,
    MemoryRelation,
    MemoryVector,
)


@admin.register(MemoryItem)
class MemoryItemAdmin(ReadOnlyAdmin):
    list_display = ("scope", "memory_type", "tier", "trust", "taint", "source_kind", "created_at", "valid_until")
    list_filter = ("tier", "trust", "taint", "source_kind", "archive_reason")
    search_fields = ("scope",)
    exclude = ("embedding", "words")


@admin.register(MemoryVector)
class MemoryVectorAdmin(ReadOnlyAdmin):
    list_display = ("memory_id", "version")
    exclude = ("embedding",)


@admin.register(MemoryConsolidation)
class MemoryConsolidationAdmin(ReadOnlyAdmin):
    list_display = (
        "merged_id",
        "kept_id",
        "reason",
        "type_before",
        "type_after",
        "taint_before",
        "taint_after",
        "created_at",
    )


@admin.register(MemoryQuestion)
class MemoryQuestionAdmin(ReadOnlyAdmin):
    list_display = ("kind", "state", "memory_id", "other_id", "kept_id", "decided_by", "created_at")
    list_filter = ("kind", "state")
    list_select_related = ("decided_by",)


@admin.register(MemoryEntity)
class MemoryEntityAdmin(ReadOnlyAdmin):
    list_display = ("name", "kind", "scope", "aliases", "created_at")
    list_filter = ("kind",)
    search_fields = ("name", "scope")


@admin.register(MemoryRelation)
class MemoryRelationAdmin(ReadOnlyAdmin):
    list_display = ("subject", "predicate", "object", "value", "valid_from", "valid_to", "confidence", "memory_id")
    list_filter = ("predicate",)
    list_select_related = ("subject", "object")
