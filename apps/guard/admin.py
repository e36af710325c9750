"""Budgets and pauses in Django admin, for administrators to edit; runs and their calls, for them to read."""

from __future__ import annotations

from typing import Any, ClassVar

from django.contrib import admin
from django.http import HttpRequest

from apps.audit.admin import ReadOnlyAdmin
from apps.guard.models import Budget, GuardedRun, SystemControl, ToolCall


class OneTenantAdmin(admin.ModelAdmin):  # type: ignore[type-arg]
    """A tenant's owner writes rows of their own tenant; who sees the platform says which tenant is meant."""

    list_select_related: ClassVar = ["tenant", "deployment"]

    def get_exclude(self, request: HttpRequest, obj: Any = None) -> tuple[str, ...]:
        return () if getattr(request.user, "is_superuser", False) else ("tenant",)


@admin.register(Budget)
class BudgetAdmin(OneTenantAdmin):
    list_display = ("tenant", "deployment", "period", "limit_usd", "spent", "reserved", "window_start")
    list_filter = ("period",)
    readonly_fields = ("window_start", "spent", "reserved")


@admin.register(SystemControl)
class SystemControlAdmin(OneTenantAdmin):
    list_display = ("tenant", "deployment", "pause")


@admin.register(GuardedRun)
class GuardedRunAdmin(ReadOnlyAdmin):
    list_display = ("started_at", "origin", "phase", "status", "halt_state", "calls", "cost_total", "tenant")
    list_filter = ("origin", "status", "halt_state")
    list_select_related: ClassVar = ["tenant"]
    ordering = ("-started_at",)


@admin.register(ToolCall)
class ToolCallAdmin(ReadOnlyAdmin):
    list_display = ("created_at", "intent", "tool", "state", "error_code", "charged", "tenant")
    list_filter = ("intent", "state")
    list_select_related: ClassVar = ["tenant"]
    ordering = ("-created_at",)
