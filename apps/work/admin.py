"""What an administrator may look at here: items, attempts and what the checks found. Nothing can be changed."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.http import HttpRequest

from apps.work.models import Attempt, VerificationRun, WorkItem


class ReadOnlyAdmin(admin.ModelAdmin):  # type: ignore[type-arg]
    actions = None

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return True


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
