"""Letters about accounts that left or could not leave, for whoever runs the platform; nothing here is written."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.http import HttpRequest

from apps.audit.admin import ReadOnlyAdmin
from apps.audit.house import is_superuser
from apps.tenants.models import Letter


@admin.register(Letter)
class LetterAdmin(ReadOnlyAdmin):
    list_display = ("kind", "address", "state", "attempts", "error_code", "created_at", "ended_at")
    list_filter = ("state", "kind")

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """An address may be anybody's, of any company or of none."""
        return is_superuser(request)
