"""Tenants, their deployments, and how much the visitors of these may send."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any, ClassVar

from django.contrib import admin, messages
from django.http import HttpRequest

from apps.audit.house import HouseAdmin
from apps.tenants import queries, services
from apps.tenants.admin.rows import TenantRowAdmin, TenantRowForm, is_superuser
from apps.tenants.models import Deployment, Retention, Tenant, VisitorLimits
from kernel.tenancy import tenant_scope

KEYLESS = (
    "No provider key may be used for {models}: the built-in model answers instead. Whoever runs the platform can allow "
    "the keys of this installation here."
)


class DeploymentForm(TenantRowForm):
    class Meta:
        help_texts: ClassVar = {
            "allowed_origins": 'Sites that may show the widget, exactly: ["https://www.example.com"]',
            "theme": 'Accent, mode, position, font, launcher, placement: {"accent": "#1f5f8b", "mode": "auto"}',
            "languages": 'What the widget itself may speak, the first by itself: ["en", "de"]; empty: all it can',
            "suggestions": 'What a visitor may press instead of typing: ["Where is my order?"]',
            "opening_hours": 'By day, in its time zone: {"mon": "08:00-18:00", "sat": "09:00-12:00"}',
            "active_goal_id": "The id of the goal whose levels and rules govern the conversations",
        }

    def clean_opening_hours(self) -> Any:
        """An empty field means that somebody is always there."""
        return self.cleaned_data["opening_hours"] or {}

    def clean_languages(self) -> Any:
        """An empty field means every language."""
        return self.cleaned_data["languages"] or []

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean()
        for name, problem in services.deployment_problems(cleaned).items():
            self.add_error(name, problem)
        return cleaned


@admin.register(Deployment)
class DeploymentAdmin(TenantRowAdmin):
    """A deployment is switched off, not deleted: its conversations stay where they were held."""

    form = DeploymentForm
    list_display = ("title", "slug", "public_key", "enabled")
    list_filter = ("enabled",)
    search_fields = ("title", "slug", "public_key")
    fieldsets: ClassVar = [
        (None, {"fields": ("title", "slug", "enabled", "public_key", "allowed_origins")}),
        ("How it looks and sounds", {"fields": ("greeting", "suggestions", "theme", "languages", "persona")}),
        ("When people answer", {"fields": ("opening_hours", "timezone", "after_hours")}),
        ("What answers", {"fields": ("model_names", "environment_keys", "active_goal_id")}),
    ]

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> tuple[str, ...]:
        """Whose keys are used is decided by whoever pays for them."""
        fields = super().get_readonly_fields(request, obj)
        return fields if is_superuser(request) else (*fields, "environment_keys")

    def save_model(self, request: HttpRequest, obj: Deployment, form: Any, change: bool) -> None:
        super().save_model(request, obj, form, change)
        if keyless := queries.models_without_key(obj):
            messages.warning(request, KEYLESS.format(models=", ".join(keyless)))

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


@admin.register(VisitorLimits)
class VisitorLimitsAdmin(TenantRowAdmin):
    """One row a tenant; what is empty is as the installation has it."""

    list_display = ("messages_a_minute", "address_messages_a_minute", "tenant_messages_a_minute", "sockets")


@admin.register(Retention)
class RetentionAdmin(TenantRowAdmin):
    """One row a tenant; a sweep forgets what is due, and the audit log is never part of it."""

    list_display = ("__str__", "conversation_days", "memory_days", "message_days", "skill_days")
    fields = ("conversation_days", "memory_days", "message_days", "skill_days")


@admin.register(Tenant)
class TenantAdmin(HouseAdmin):
    list_display = ("name", "slug", "timezone", "created_at")
    search_fields = ("name", "slug")

    def scope_of(self, obj: Tenant) -> AbstractContextManager[Any]:
        return tenant_scope(obj)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False
