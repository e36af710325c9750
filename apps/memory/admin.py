"""Memories in Django admin, to view. They are deleted in the console, by customer or conversation."""

from __future__ import annotations

from django.contrib import admin

from apps.audit.admin_base import ReadOnlyAdmin
from apps.memory.models import MemoryConsolidation, MemoryItem


@admin.register(MemoryItem)
class MemoryItemAdmin(ReadOnlyAdmin):
    list_display = ("scope", "memory_type", "tier", "trust", "taint", "source_kind", "created_at", "valid_until")
    list_filter = ("tier", "trust", "taint", "source_kind")
    search_fields = ("scope",)
    exclude = ("embedding", "words")


@admin.register(MemoryConsolidation)
class MemoryConsolidationAdmin(ReadOnlyAdmin):
    list_display = ("merged_id", "kept_id", "reason", "taint_before", "taint_after", "created_at")
