"""Contacts in Django admin, to view. They are changed in the console and over the REST API."""

from __future__ import annotations

from typing import ClassVar

from django.contrib import admin

from apps.audit.admin_base import ReadOnlyAdmin
from apps.contacts.models import Contact, ContactIdentity, ContactMerge, ContactNote, Erasure


@admin.register(Contact)
class ContactAdmin(ReadOnlyAdmin):
    list_display = ("id", "name", "source", "created_at", "last_seen_at", "merged_into")
    list_filter = ("source",)
    list_select_related: ClassVar = ["merged_into"]
    search_fields = ("name",)


@admin.register(ContactIdentity)
class ContactIdentityAdmin(ReadOnlyAdmin):
    list_display = ("kind", "value", "proved_by", "proved_at", "contact")
    list_filter = ("kind", "proved_by")
    search_fields = ("value",)
    list_select_related: ClassVar = ["contact"]


@admin.register(ContactMerge)
class ContactMergeAdmin(ReadOnlyAdmin):
    list_display = ("kept_id", "merged_id", "by", "created_at", "undone_at")


@admin.register(ContactNote)
class ContactNoteAdmin(ReadOnlyAdmin):
    list_display = ("contact_id", "author", "created_at")
    list_select_related: ClassVar = ["author"]


@admin.register(Erasure)
class ErasureAdmin(ReadOnlyAdmin):
    list_display = ("reference", "state", "requested_by", "created_at", "ended_at")
    list_filter = ("state",)
    exclude = ("person",)
