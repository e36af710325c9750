"""What may an administrator see of the log? All of it, to read, and nothing to write."""

from __future__ import annotations

from typing import Any, ClassVar

from django.contrib import admin
from django.http import HttpRequest

from apps.audit.enums import AuditEvent
from apps.audit.house import HouseAdmin
from apps.audit.models import AuditCheckpoint, AuditEntry


class ReadOnlyAdmin(HouseAdmin):
    """List and look; nothing is added, changed or deleted here."""

    actions = None

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return True


class EventFilter(admin.SimpleListFilter):
    """By event, from the closed list, so that no query has to look for the events there are."""

    title = "event"
    parameter_name = "event"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return list(AuditEvent.choices)

    def queryset(self, request: HttpRequest, queryset: Any) -> Any:
        return queryset.filter(event=self.value()) if self.value() else queryset


@admin.register(AuditEntry)
class AuditEntryAdmin(ReadOnlyAdmin):
    list_display = ("timestamp", "seq", "event", "actor", "subject", "data", "tenant")
    list_filter = (EventFilter,)
    list_select_related: ClassVar = ["tenant"]
    search_fields = ("subject", "actor")
    ordering = ("-timestamp",)


@admin.register(AuditCheckpoint)
class AuditCheckpointAdmin(ReadOnlyAdmin):
    list_display = ("created_at", "seq", "entry_hash", "key_id", "tenant")
    list_select_related: ClassVar = ["tenant"]
    ordering = ("-created_at",)
