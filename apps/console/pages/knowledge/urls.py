"""The addresses of this page below `/console/`."""

from __future__ import annotations

from django.urls import path

from apps.console.pages.knowledge import views

urlpatterns = [
    path("knowledge/", views.listing, name="console-knowledge"),
    path("knowledge/new/", views.new, name="console-knowledge-new"),
    path("knowledge/try/", views.tester, name="console-knowledge-try"),
    path("knowledge/<uuid:collection_id>/", views.collection, name="console-collection"),
    path("knowledge/<uuid:collection_id>/hand-in/", views.hand_in, name="console-hand-in"),
    path("knowledge/document/<uuid:document_id>/", views.document, name="console-document"),
    path("knowledge/document/<uuid:document_id>/again/", views.read_again, name="console-document-again"),
    path("knowledge/document/<uuid:document_id>/delete/", views.forget, name="console-document-delete"),
]
