"""Read-only list of account e-mails that were sent or failed, for superusers."""

from __future__ import annotations

from django.contrib import admin
from django.db.models import Model
from django.http import HttpRequest

from apps.audit.admin_base import ReadOnlyAdmin, is_superuser
from apps.tenants.models import Letter


@admin.register(Letter)
class EmailAdmin(ReadOnlyAdmin):
    list_display = ("kind", "address", "state", "attempts", "error_code", "created_at", "ended_at")
    list_filter = ("state", "kind")

    def has_view_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """Superusers only, because an address may belong to any company or to none."""
        return is_superuser(request)
