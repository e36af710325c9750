"""Read-only Django admin for skills and records: versions come from installation, records change through actions."""

from __future__ import annotations

from django.contrib import admin
from django.utils.translation import gettext_lazy

from apps.audit.admin_base import ReadOnlyAdmin
from apps.skills.models import Record, SkillVersion


@admin.register(SkillVersion)
class SkillVersionAdmin(ReadOnlyAdmin):
    """Evidence: what each version is, where it came from, what was reported, and which approval was spent for it."""

    list_display = ("name", "number", "status", "source", "digest", "activated_at", "created_at")
    list_filter = ("status", "source", "name")
    search_fields = ("name", "digest")
    fields = (
        "name",
        "number",
        "status",
        "source",
        "digest",
        "requested_by",
        "card_id",
        "approval_token",
        "activated_at",
        "created_at",
        "report",
        "manifest",
        "body",
        "contents",
    )
    readonly_fields = ("contents",)

    @admin.display(description=gettext_lazy("Files"))
    def contents(self, version: SkillVersion) -> str:
        return "\n".join(f"{file.path} ({len(file.content)} bytes)" for file in version.files.order_by("path"))


@admin.register(Record)
class RecordAdmin(ReadOnlyAdmin):
    list_display = ("book", "key", "subject", "revision", "updated_at")
    list_filter = ("book",)
    search_fields = ("key", "subject")
