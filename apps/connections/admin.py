"""Read-only Django admin for connections and their set-ups. Credentials are shown nowhere."""

from __future__ import annotations

from django.contrib import admin

from apps.audit.admin_base import ReadOnlyAdmin
from apps.connections.models import Connection, ItRequest, SetupRun


@admin.register(Connection)
class ConnectionAdmin(ReadOnlyAdmin):
    list_display = ("name", "skill_name", "status", "identity", "last_health_check", "tenant")
    list_filter = ("status", "skill_name")
    list_select_related = ("tenant",)


@admin.register(ItRequest)
class ItRequestAdmin(ReadOnlyAdmin):
    list_display = ("subject", "to", "connection", "changed_at", "tenant")
    list_select_related = ("connection", "tenant")


@admin.register(SetupRun)
class SetupRunAdmin(ReadOnlyAdmin):
    list_display = ("created_at", "purpose", "state", "ignored", "tenant")
    list_filter = ("state", "purpose")
    list_select_related = ("tenant",)
    exclude = ("state_token", "browser")
