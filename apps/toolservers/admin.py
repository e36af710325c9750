"""Read-only Django admin for outside tool servers: what they reported, and the terms on which it is in use; no
token."""

from __future__ import annotations

from django.contrib import admin

from apps.audit.admin_base import ReadOnlyAdmin
from apps.toolservers.models import OutsideTool, ToolServer, ToolSet, WebSearch


@admin.register(ToolServer)
class ToolServerAdmin(ReadOnlyAdmin):
    list_display = ("name", "transport", "url", "enabled", "removed", "listed_at", "failure", "tenant")
    list_filter = ("transport", "enabled", "removed")
    list_select_related = ("tenant",)
    search_fields = ("name",)
    exclude = ("secret",)


@admin.register(OutsideTool)
class OutsideToolAdmin(ReadOnlyAdmin):
    list_display = ("alias", "server", "state", "acting", "risk", "level", "price", "accepted_at", "tenant")
    list_filter = ("state", "acting", "risk")
    list_select_related = ("server", "tenant")
    search_fields = ("alias",)


@admin.register(ToolSet)
class ToolSetAdmin(ReadOnlyAdmin):
    list_display = ("server", "digest", "created_at", "tenant")
    list_select_related = ("server", "tenant")


@admin.register(WebSearch)
class WebSearchAdmin(ReadOnlyAdmin):
    list_display = ("provider", "base_url", "most_results", "price", "level", "failure", "tenant")
    list_filter = ("provider",)
    list_select_related = ("tenant",)
    exclude = ("key",)
