"""Imports in Django admin, to view."""

from __future__ import annotations

from django.contrib import admin

from apps.audit.admin_base import ReadOnlyAdmin
from apps.imports.models import ImportPart, ImportRun


@admin.register(ImportRun)
class ImportRunAdmin(ReadOnlyAdmin):
    list_display = ("name", "system", "dry_run", "state", "by", "created_at", "ended_at")
    list_filter = ("system", "state")
    exclude = ("content",)


@admin.register(ImportPart)
class ImportPartAdmin(ReadOnlyAdmin):
    list_display = ("run_id", "number")
    exclude = ("found",)
