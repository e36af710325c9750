"""Which letters about accounts left, and which could not? For whoever runs the platform; nothing here is written."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.http import HttpRequest

from apps.tenants.models import Letter


@admin.register(Letter)
class LetterAdmin(admin.ModelAdmin):  # type: ignore[type-arg]  # generic in its stubs only
    list_display = ("kind", "address", "state", "attempts", "error_code", "created_at", "due_at")
    list_filter = ("state", "kind")

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False
