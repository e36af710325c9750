"""Skills and records in Django admin, to look at: versions come in by installation, records change by actions."""

from __future__ import annotations

from django.contrib import admin

from apps.audit.admin import ReadOnlyAdmin
from apps.skills.models import Record, SkillVersion


@admin.register(SkillVersion)
class SkillVersionAdmin(ReadOnlyAdmin):
    list_display = ("name", "number", "digest", "created_at")
    list_filter = ("name",)


@admin.register(Record)
class RecordAdmin(ReadOnlyAdmin):
    list_display = ("book", "key", "subject", "revision", "updated_at")
    list_filter = ("book",)
    search_fields = ("key", "subject")
