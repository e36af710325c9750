"""Gates in Django admin: an owner edits policy; a row that is no gate is refused with the reason."""

from __future__ import annotations

from typing import ClassVar

from django.contrib import admin

from apps.gates.models import Gate
from apps.tenants.admin import TenantRowAdmin


@admin.register(Gate)
class GateAdmin(TenantRowAdmin):
    list_display = ("name", "deployment", "on", "provider", "type", "on_block", "order", "enabled")
    list_filter = ("on", "provider", "enabled")
    search_fields = ("name",)
    ordering = ("order", "name")
    fieldsets: ClassVar = [
        (None, {"fields": ("name", "deployment", "enabled", "order", "on", "after_step", "on_block")}),
        (
            "Who looks",
            {"fields": ("provider", "type", "validator", "check_command", "check_expect", "config", "extract")},
        ),
        (
            "What is allowed",
            {"fields": ("auto_approve", "require_approval", "block", "allowed_values", "approval_values")},
        ),
        ("Lane", {"fields": ("promote_to_policy",)}),
    ]
