"""Admin of tenants, deployments, visitor limits and retention."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any, ClassVar
from uuid import UUID

from django import forms
from django.apps import apps
from django.contrib import admin, messages
from django.db.models import Model
from django.forms import ModelForm
from django.http import HttpRequest
from django.utils.dates import WEEKDAYS
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from apps.audit.admin_base import BaseAdmin
from apps.tenants import queries, rules, services
from apps.tenants.admin.fields import LinesField, OriginsField, PartsField
from apps.tenants.admin.rows import TenantRowAdmin, TenantRowForm, is_superuser
from apps.tenants.hours import DAYS
from apps.tenants.models import Deployment, Retention, Tenant, VisitorLimits
from apps.tenants.signals import tenant_changed
from kernel.tenancy import tenant_scope

KEYLESS = gettext_lazy(
    "There is no provider key for %(models)s, so the built-in model answers instead. The platform operator can allow "
    "the keys of this installation here."
)


_THEME_NAMES = {
    "accent": gettext_lazy("Colour"),
    "mode": gettext_lazy("Light or dark"),
    "position": gettext_lazy("Side"),
    "font": gettext_lazy("Font"),
    "launcher": gettext_lazy("Text on the bubble"),
    "placement": gettext_lazy("Bubble or inline"),
    "home": gettext_lazy("Home screen"),
}
_ROLE_NAMES = {
    "proxy": gettext_lazy("Talks to visitors"),
    "planner": gettext_lazy("Plans work"),
    "executor": gettext_lazy("Carries out approved work"),
    "scorer": gettext_lazy("Shortens long conversations"),
}


class DeploymentForm(TenantRowForm):
    allowed_origins = OriginsField(
        label=gettext_lazy("Allowed websites"),
        help_text=gettext_lazy("Websites that may show the widget, one per line, such as https://www.example.com"),
    )
    suggestions = LinesField(
        label=gettext_lazy("Suggestions"), help_text=gettext_lazy("Questions that visitors can press, one per line")
    )
    languages = LinesField(
        label=gettext_lazy("Languages"),
        help_text=gettext_lazy("Codes of the widget's languages, one per line, the default first; empty for all"),
    )
    theme = PartsField(
        {name: _THEME_NAMES.get(name, name) for name in rules.THEME_PARTS}, label=gettext_lazy("Appearance")
    )
    opening_hours = PartsField(
        dict(zip(DAYS, WEEKDAYS.values(), strict=True)),
        label=gettext_lazy("Opening hours"),
        help_text=gettext_lazy("In the time zone below, such as 08:00-12:00, 13:00-18:00; all empty for always"),
    )
    model_names = PartsField(
        {role: _ROLE_NAMES.get(role, role) for role in (*rules.MODEL_ROLES, *rules.OPTIONAL_ROLES)},
        label=gettext_lazy("Models"),
        help_text=gettext_lazy("builtin:grounded, or a provider and a model, such as openai:gpt-5-mini"),
    )

    active_goal_id = forms.TypedChoiceField(
        label=gettext_lazy("Goal"),
        coerce=UUID,
        empty_value=None,
        required=False,
        help_text=gettext_lazy(
            "The goal whose access levels and rules apply to the conversations. A new one is added under Goals."
        ),
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        current = self.instance.active_goal_id
        # Goals belong to the app `work`, which is above this one.
        goals = apps.get_model("work", "WorkItem").objects.filter(type="goal", deployment_id=self.instance.pk)
        titles = {str(pk): title for pk, title in goals.order_by("-created_at").values_list("pk", "title")[:100]}
        if current is not None:
            titles.setdefault(str(current), str(current))
        goal = self.fields["active_goal_id"]
        assert isinstance(goal, forms.ChoiceField)
        goal.choices = [("", _("No goal")), *titles.items()]
        self.initial["active_goal_id"] = "" if current is None else str(current)

    def clean(self) -> dict[str, object]:
        cleaned = super().clean()
        for name, problem in services.deployment_problems(cleaned).items():
            self.add_error(name, problem)
        return cleaned


@admin.register(Deployment)
class DeploymentAdmin(TenantRowAdmin):
    """Deployments are disabled, never deleted, because conversations refer to them."""

    form = DeploymentForm
    list_display = ("title", "slug", "public_key", "enabled")
    list_filter = ("enabled",)
    search_fields = ("title", "slug", "public_key")
    fieldsets: ClassVar = [
        (None, {"fields": ("title", "slug", "enabled", "public_key", "allowed_origins")}),
        (gettext_lazy("Appearance and tone"), {"fields": ("greeting", "suggestions", "theme", "languages", "persona")}),
        (gettext_lazy("Opening hours"), {"fields": ("opening_hours", "timezone", "after_hours")}),
        (gettext_lazy("Models"), {"fields": ("model_names", "environment_keys", "active_goal_id")}),
    ]

    def get_readonly_fields(self, request: HttpRequest, obj: Model | None = None) -> tuple[str, ...]:
        """Only superusers allow the installation's keys, because the operator pays for them."""
        fields = super().get_readonly_fields(request, obj)
        return fields if is_superuser(request) else (*fields, "environment_keys")

    def save_model(self, request: HttpRequest, obj: Deployment, form: ModelForm[Deployment], change: bool) -> None:
        super().save_model(request, obj, form, change)
        if keyless := queries.models_without_key(obj):
            messages.warning(request, str(KEYLESS) % {"models": ", ".join(keyless)})

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False


@admin.register(VisitorLimits)
class VisitorLimitsAdmin(TenantRowAdmin):
    """One row per tenant; empty fields use the limits of the installation."""

    list_display = ("messages_a_minute", "address_messages_a_minute", "tenant_messages_a_minute", "sockets")


@admin.register(Retention)
class RetentionAdmin(TenantRowAdmin):
    """One row per tenant. The audit log is never deleted."""

    list_display = ("__str__", "conversation_days", "memory_days", "message_days", "skill_days")
    fields = ("conversation_days", "memory_days", "message_days", "skill_days")


@admin.register(Tenant)
class TenantAdmin(BaseAdmin):
    list_display = ("name", "slug", "timezone", "created_at")
    search_fields = ("name", "slug")

    def scope_of(self, obj: Tenant) -> AbstractContextManager[object]:
        return tenant_scope(obj)

    def save_model(self, request: HttpRequest, obj: Tenant, form: Any, change: bool) -> None:
        super().save_model(request, obj, form, change)
        with self.scope_of(obj):
            tenant_changed()

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False
