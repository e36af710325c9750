"""What an administrator may look at here: items, attempts and what the checks found. Nothing can be changed."""

from __future__ import annotations

from django.contrib import admin

from apps.audit.admin import ReadOnlyAdmin
from apps.work.models import Attempt, VerificationRun, WorkItem


@admin.register(WorkItem)
class WorkItemAdmin(ReadOnlyAdmin):
    list_display = ("title", "type", "status", "reason", "attempts_made", "created_at")
    list_filter = ("status", "type")
    ordering = ("-created_at",)


@admin.register(Attempt)
class AttemptAdmin(ReadOnlyAdmin):
    list_display = ("work_item", "number", "status", "started_at", "ended_at")
    list_filter = ("status",)
    ordering = ("-started_at",)


@admin.register(VerificationRun)
class VerificationRunAdmin(ReadOnlyAdmin):
    list_display = ("attempt", "all_passed", "ran_at")
    list_filter = ("all_passed",)
    ordering = ("-ran_at",)
