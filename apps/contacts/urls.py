"""The addresses of contacts in the REST API."""

from __future__ import annotations

from django.urls import path

from apps.contacts import api

_CONTACT = "api/v1/contacts/<uuid:contact_id>"

urlpatterns = [
    path("api/v1/contacts", api.Contacts.as_view(), name="api-contacts"),
    path(_CONTACT, api.OneContact.as_view(), name="api-contact"),
    path(f"{_CONTACT}/merge", api.Merge.as_view(), name="api-contact-merge"),
    path(f"{_CONTACT}/unmerge", api.Unmerge.as_view(), name="api-contact-unmerge"),
    path(f"{_CONTACT}/export", api.Export.as_view(), name="api-contact-export"),
    path(f"{_CONTACT}/forget", api.Forget.as_view(), name="api-contact-forget"),
    path(f"{_CONTACT}/erase", api.Erase.as_view(), name="api-contact-erase"),
    path("api/v1/sessions/<uuid:session_id>/export", api.ExportVisitor.as_view(), name="api-session-export"),
    path("api/v1/sessions/<uuid:session_id>/erase", api.EraseVisitor.as_view(), name="api-session-erase"),
    path("api/v1/erasures", api.Erasures.as_view(), name="api-erasures"),
    path("api/v1/erasures/<uuid:erasure_id>", api.OneErasure.as_view(), name="api-erasure"),
    path("api/v1/erasures/<uuid:erasure_id>/receipt", api.Receipt.as_view(), name="api-erasure-receipt"),
    path(f"{_CONTACT}/sessions", api.Sessions.as_view(), name="api-contact-sessions"),
    path(f"{_CONTACT}/history", api.History.as_view(), name="api-contact-history"),
    path("api/v1/imported-sessions/<uuid:conversation_id>", api.ImportedSession.as_view(), name="api-imported-session"),
    path(f"{_CONTACT}/memories", api.Memories.as_view(), name="api-contact-memories"),
    path(f"{_CONTACT}/consents", api.Consents.as_view(), name="api-contact-consents"),
    path(f"{_CONTACT}/notes", api.Notes.as_view(), name="api-contact-notes"),
]
