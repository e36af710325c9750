"""Events in Django admin, to view."""

from __future__ import annotations

from django.contrib import admin

from apps.audit.admin_base import ReadOnlyAdmin
from apps.events.models import Event, EventHead


@admin.register(Event)
class EventAdmin(ReadOnlyAdmin):
    list_display = ("seq", "type", "deployment_id", "session_id", "created_at")
    list_filter = ("type",)


@admin.register(EventHead)
class EventHeadAdmin(ReadOnlyAdmin):
    list_display = ("tenant_id", "last_seq", "deleted_seq")
