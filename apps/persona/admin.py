"""Personalities in Django admin, to view. They are changed in the studio and over the API."""

from __future__ import annotations

from typing import ClassVar

from django.contrib import admin

from apps.audit.admin_base import ReadOnlyAdmin
from apps.persona.models import PersonaEvent, PersonaState


@admin.register(PersonaState)
class PersonaStateAdmin(ReadOnlyAdmin):
    list_display = ("deployment", "active_preset", "updated_at")
    list_select_related: ClassVar = ["tenant", "deployment"]
    list_filter = ("active_preset",)


@admin.register(PersonaEvent)
class PersonaEventAdmin(ReadOnlyAdmin):
    list_display = ("deployment", "event_type", "trusted", "source", "created_at")
    list_select_related: ClassVar = ["tenant", "deployment"]
    list_filter = ("event_type", "trusted", "source")
