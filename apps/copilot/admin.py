"""Switch kinds of assistance off for a chatbot, and read the records of requests."""

from __future__ import annotations

from typing import ClassVar

from django import forms
from django.contrib import admin

from apps.audit.admin_base import ReadOnlyAdmin
from apps.copilot.enums import AssistanceKind
from apps.copilot.models import Assistance, AssistanceSettings
from apps.tenants.admin import TenantRowAdmin, TenantRowForm
from kernel.language import gettext_lazy


class AssistanceSettingsForm(TenantRowForm):
    switched_off = forms.MultipleChoiceField(
        choices=AssistanceKind.choices,
        required=False,
        widget=forms.CheckboxSelectMultiple,
        label=gettext_lazy("Switched off"),
        help_text=gettext_lazy("Members of this chatbot's team don't have these."),
    )


@admin.register(AssistanceSettings)
class AssistanceSettingsAdmin(TenantRowAdmin):
    """One row a chatbot; without one every kind is on."""

    form = AssistanceSettingsForm
    list_display = ("deployment", "switched_off")
    list_select_related: ClassVar = ["deployment", "tenant"]
    fields = ("deployment", "switched_off")


@admin.register(Assistance)
class AssistanceAdmin(ReadOnlyAdmin):
    list_display = ("created_at", "kind", "status", "model_name", "cost_usd", "session_id")
    list_filter = ("kind", "status")
