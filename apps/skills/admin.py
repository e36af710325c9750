"""Skills and records in Django admin, to look at: versions come in by installation, records change by actions."""

from __future__ import annotations

from typing import Any

from django.contrib import admin

from apps.skills.models import Record, SkillVersion


class ReadOnlyAdmin(admin.ModelAdmin):  # type: ignore[type-arg]
    def has_add_permission(self, request: Any) -> bool:
        return False

    def has_change_permission(self, request: Any, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: Any, obj: Any = None) -> bool:
        return False


@admin.register(SkillVersion)
class SkillVersionAdmin(ReadOnlyAdmin):
    list_display = ("name", "number", "digest", "created_at")
    list_filter = ("name",)


@admin.register(Record)
class RecordAdmin(ReadOnlyAdmin):
    list_display = ("book", "key", "subject", "revision", "updated_at")
    list_filter = ("book",)
    search_fields = ("key", "subject")
