"""Show audit entries and checkpoints in the administration, read-only."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from django.contrib import admin
from django.http import HttpRequest
from django.utils.translation import gettext_lazy

from apps.audit.admin_base import ReadOnlyAdmin
from apps.audit.enums import AuditEvent
from apps.audit.models import AuditCheckpoint, AuditEntry

if TYPE_CHECKING:
    from django_stubs_ext import StrOrPromise


class EventFilter(admin.SimpleListFilter):
    """Filter by event, from the enum, so that no query has to collect the events that occur."""

    title = gettext_lazy("event")
    parameter_name = "event"

    def lookups(self, request: HttpRequest, model_admin: object) -> list[tuple[str, StrOrPromise]]:
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
