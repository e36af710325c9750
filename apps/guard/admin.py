"""Budgets, prices and pauses in Django admin, for administrators to edit; runs and their calls, for them to read."""

from __future__ import annotations

from typing import Any, ClassVar

from django.contrib import admin
from django.http import HttpRequest

from apps.audit.admin import ReadOnlyAdmin
from apps.audit.enums import AuditEvent
from apps.audit.services import record
from apps.guard.models import Budget, GuardedRun, ModelPrice, PlatformBudget, SpendingPolicy, SystemControl, ToolCall
from apps.tenants.admin import TenantRowAdmin
from apps.tenants.admin.rows import actor_of


@admin.register(Budget)
class BudgetAdmin(TenantRowAdmin):
    list_display = ("holder", "deployment", "period", "limit_usd", "spent", "reserved", "window_start")
    list_filter = ("period",)
    list_select_related: ClassVar = ["tenant", "deployment"]
    readonly_fields = ("window_start", "spent", "reserved")


@admin.register(SpendingPolicy)
class SpendingPolicyAdmin(TenantRowAdmin):
    list_display = ("on_limit", "visitor_daily_usd", "default_input", "default_output")
    list_select_related: ClassVar = ["tenant"]


@admin.register(ModelPrice)
class ModelPriceAdmin(TenantRowAdmin):
    list_display = ("model", "input_per_million", "output_per_million", "changed_at")
    list_select_related: ClassVar = ["tenant"]


@admin.register(PlatformBudget)
class PlatformBudgetAdmin(admin.ModelAdmin):  # type: ignore[type-arg]  # generic in its stubs only
    """The installation's own cap: whoever runs it sees and sets it; an owner may only what is their tenant's."""

    list_display = ("period", "limit_usd", "spent", "reserved", "window_start")
    readonly_fields = ("window_start", "spent", "reserved")

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        super().save_model(request, obj, form, change)
        self._write_down(request, obj, "changed" if change else "added")

    def delete_model(self, request: HttpRequest, obj: Any) -> None:
        self._write_down(request, obj, "deleted")
        super().delete_model(request, obj)

    def delete_queryset(self, request: HttpRequest, queryset: Any) -> None:
        for row in queryset:
            self.delete_model(request, row)

    def _write_down(self, request: HttpRequest, row: PlatformBudget, change: str) -> None:
        data = {"model": row._meta.label_lower, "change": change}
        record(AuditEvent.ADMIN_CHANGED, actor=actor_of(request), subject=f"row:{row.pk}", data=data)


@admin.register(SystemControl)
class SystemControlAdmin(TenantRowAdmin):
    list_display = ("deployment", "pause")
    list_select_related: ClassVar = ["tenant", "deployment"]


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
