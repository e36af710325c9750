"""Conversations in Django admin, to read: what was said stays as it was said."""

from __future__ import annotations

from typing import ClassVar

from django.contrib import admin

from apps.audit.admin import ReadOnlyAdmin
from apps.sessions.models import ChatSession, ChronicleEntry, Turn


@admin.register(ChatSession)
class ChatSessionAdmin(ReadOnlyAdmin):
    list_display = ("visitor_name", "deployment", "owner", "level", "turns", "last_active_at")
    list_filter = ("owner",)
    list_select_related: ClassVar = ["deployment"]
    exclude = ("resume_hash",)
    ordering = ("-last_active_at",)


@admin.register(ChronicleEntry)
class ChronicleEntryAdmin(ReadOnlyAdmin):
    list_display = ("created_at", "session_id", "seq", "kind", "sender", "taint")
    list_filter = ("kind", "sender")
    ordering = ("-created_at",)


@admin.register(Turn)
class TurnAdmin(ReadOnlyAdmin):
    list_display = ("started_at", "session_id", "number", "status", "reason", "step", "model_name")
    list_filter = ("status",)
    ordering = ("-started_at",)
