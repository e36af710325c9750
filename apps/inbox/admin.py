"""Teams, availability, macros, saved views, inbox rules and SLA policies in Django admin, to view; the console and the
API change them."""

from __future__ import annotations

from typing import ClassVar

from django.contrib import admin

from apps.audit.admin_base import ReadOnlyAdmin
from apps.inbox.models import Availability, InboxRule, Macro, SavedView, SlaClock, SlaPolicy, Team, TeamMember


@admin.register(Team)
class TeamAdmin(ReadOnlyAdmin):
    list_display = ("name", "assignment", "capacity", "is_default", "timezone")
    list_filter = ("assignment",)
    search_fields = ("name",)


@admin.register(TeamMember)
class TeamMemberAdmin(ReadOnlyAdmin):
    list_display = ("team", "user", "skills")
    list_filter = ("team",)
    list_select_related: ClassVar = ["team", "user"]


@admin.register(Availability)
class AvailabilityAdmin(ReadOnlyAdmin):
    list_display = ("user", "away", "changed_at")
    list_filter = ("away",)
    list_select_related: ClassVar = ["user"]


@admin.register(SavedView)
class SavedViewAdmin(ReadOnlyAdmin):
    list_display = ("name", "page", "owner")
    list_filter = ("page",)
    search_fields = ("name",)
    list_select_related: ClassVar = ["owner"]


@admin.register(Macro)
class MacroAdmin(ReadOnlyAdmin):
    list_display = ("name", "owner")
    search_fields = ("name",)
    list_select_related: ClassVar = ["owner"]


@admin.register(InboxRule)
class InboxRuleAdmin(ReadOnlyAdmin):
    list_display = ("position", "name", "trigger", "is_active", "version")
    list_display_links = ("name",)
    list_filter = ("trigger", "is_active")
    search_fields = ("name",)


@admin.register(SlaPolicy)
class SlaPolicyAdmin(ReadOnlyAdmin):
    list_display = ("position", "name", "first_reply", "next_reply", "resolution", "in_opening_hours")
    list_display_links = ("name",)
    search_fields = ("name",)


@admin.register(SlaClock)
class SlaClockAdmin(ReadOnlyAdmin):
    list_display = ("session", "target", "outcome", "started_at", "due_at", "ended_at", "policy")
    list_filter = ("outcome", "target")
    list_select_related: ClassVar = ["session", "policy"]
