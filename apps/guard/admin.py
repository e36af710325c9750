"""Edit budgets, prices and pauses in the administration, and show runs and their calls."""

from __future__ import annotations

from typing import ClassVar

from django.contrib import admin
from django.db.models import Model
from django.http import HttpRequest

from apps.audit.admin_base import BaseAdmin, ReadOnlyAdmin
from apps.guard.models import Budget, GuardedRun, ModelPrice, PlatformBudget, SpendingPolicy, SystemControl, ToolCall
from apps.tenants.admin import TenantRowAdmin


@admin.register(Budget)
class BudgetAdmin(TenantRowAdmin):
    list_display = ("holder", "deployment", "period", "limit_usd", "spent", "reserved", "window_start")
    list_filter = ("period",)
    list_select_related: ClassVar = ["tenant", "deployment"]
    readonly_fields = ("visitor_ref", "task_ref", "window_start", "spent", "reserved")

    def get_exclude(self, request: HttpRequest, obj: Model | None = None) -> tuple[str, ...]:
        """A new limit is for the company or a chatbot; limits of visitors and tasks are set elsewhere and only changed
        here."""
        excluded = super().get_exclude(request, obj)
        return excluded if obj else (*excluded, *self.readonly_fields)

    def get_readonly_fields(self, request: HttpRequest, obj: Model | None = None) -> tuple[str, ...]:
        return super().get_readonly_fields(request, obj) if obj else ()


@admin.register(SpendingPolicy)
class SpendingPolicyAdmin(TenantRowAdmin):
    list_display = ("on_limit", "visitor_daily_usd", "default_input", "default_output")
    list_select_related: ClassVar = ["tenant"]


@admin.register(ModelPrice)
class ModelPriceAdmin(TenantRowAdmin):
    list_display = ("model", "input_per_million", "output_per_million", "changed_at")
    search_fields = ("model",)
    list_select_related: ClassVar = ["tenant"]


@admin.register(PlatformBudget)
class PlatformBudgetAdmin(BaseAdmin):
    """Edit the installation's own cap, which only its operator sees."""

    list_display = ("period", "limit_usd", "spent", "reserved", "window_start")
    readonly_fields = ("window_start", "spent", "reserved")


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
    search_fields = ("tool", "error_code")
    list_select_related: ClassVar = ["tenant"]
    ordering = ("-created_at",)
