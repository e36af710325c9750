"""Read-only admin of automations; they are changed in the console, which checks every change."""

from __future__ import annotations

from typing import ClassVar

from django.contrib import admin

from apps.audit.admin_base import ReadOnlyAdmin
from apps.autonomy.models import (
    Artifact,
    AutonomousSession,
    AutonomySettings,
    Finding,
    MemoryProposal,
    Outbox,
    Task,
    Trigger,
)


@admin.register(Task)
class TaskAdmin(ReadOnlyAdmin):
    list_display = ("name", "deployment", "priority", "critical", "quarantined_at", "deleted_at", "tenant")
    list_filter = ("priority", "critical")
    search_fields = ("name",)
    list_select_related: ClassVar = ["tenant", "deployment"]


@admin.register(Trigger)
class TriggerAdmin(ReadOnlyAdmin):
    list_display = ("task", "kind", "next_at", "last_at", "enabled", "disabled_reason", "tenant")
    list_filter = ("kind", "enabled")
    list_select_related: ClassVar = ["tenant", "task"]


@admin.register(AutonomousSession)
class AutonomousSessionAdmin(ReadOnlyAdmin):
    list_display = ("queued_at", "task", "trigger_kind", "attempt", "status", "phase", "terminal_reason", "tenant")
    list_filter = ("status", "trigger_kind")
    list_select_related: ClassVar = ["tenant", "task"]


@admin.register(AutonomySettings)
class AutonomySettingsAdmin(ReadOnlyAdmin):
    list_display = ("tenant", "enabled", "max_concurrent")
    list_select_related: ClassVar = ["tenant"]


@admin.register(Finding)
class FindingAdmin(ReadOnlyAdmin):
    list_display = ("created_at", "task", "severity", "phase", "tenant")
    list_filter = ("severity",)
    list_select_related: ClassVar = ["tenant", "task"]


@admin.register(Artifact)
class ArtifactAdmin(ReadOnlyAdmin):
    list_display = ("created_at", "task", "kind", "size", "tenant")
    list_filter = ("kind",)
    list_select_related: ClassVar = ["tenant", "task"]


@admin.register(MemoryProposal)
class MemoryProposalAdmin(ReadOnlyAdmin):
    list_display = ("created_at", "task", "kind", "state", "tenant")
    list_filter = ("kind", "state")
    list_select_related: ClassVar = ["tenant", "task"]


@admin.register(Outbox)
class OutboxAdmin(ReadOnlyAdmin):
    list_display = ("created_at", "channel", "event", "state", "attempts", "error_code", "tenant")
    list_filter = ("channel", "state")
    list_select_related: ClassVar = ["tenant"]
