"""Which letters about accounts left, and which could not? For whoever runs the platform; nothing here is written."""

from __future__ import annotations

from django.contrib import admin

from apps.audit.admin import ReadOnlyAdmin
from apps.tenants.models import Letter


@admin.register(Letter)
class LetterAdmin(ReadOnlyAdmin):
    list_display = ("kind", "address", "state", "attempts", "error_code", "created_at", "due_at")
    list_filter = ("state", "kind")
