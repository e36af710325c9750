"""The addresses of this page below `/console/`."""

from __future__ import annotations

from django.urls import path

from apps.console.pages.contacts import imports, views

urlpatterns = [
    path("contacts/", views.listing, name="console-contacts"),
    path("contacts/new/", views.add, name="console-contact-new"),
    path("contacts/imports/", imports.listing, name="console-imports"),
    path("contacts/imports/<uuid:run_id>/", imports.report, name="console-import"),
    path("contacts/history/<uuid:conversation_id>/", views.history_of, name="console-contact-history"),
    path("contacts/<uuid:contact_id>/", views.contact, name="console-contact"),
    path("contacts/<uuid:contact_id>/save/", views.save, name="console-contact-save"),
    path("contacts/<uuid:contact_id>/note/", views.note, name="console-contact-note"),
    path("contacts/<uuid:contact_id>/merge/", views.merge, name="console-contact-merge"),
    path("contacts/<uuid:contact_id>/unmerge/", views.unmerge, name="console-contact-unmerge"),
    path("contacts/<uuid:contact_id>/export/", views.export, name="console-contact-export"),
    path("contacts/<uuid:contact_id>/erase/", views.erase, name="console-contact-erase"),
    path("contacts/visitors/<uuid:session_id>/export/", views.export_visitor, name="console-visitor-export"),
    path("contacts/visitors/<uuid:session_id>/erase/", views.erase_visitor, name="console-visitor-erase"),
    path("contacts/erasures/", views.erasures, name="console-erasures"),
    path("contacts/erasures/<uuid:erasure_id>/", views.one_erasure, name="console-erasure"),
    path("contacts/erasures/<uuid:erasure_id>/receipt/", views.receipt, name="console-erasure-receipt"),
]
