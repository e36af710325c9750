"""The addresses of this page below `/console/`."""

from __future__ import annotations

from django.urls import path

from apps.console.pages.knowledge import gaps, search_models, sources, views

urlpatterns = [
    path("knowledge/", views.listing, name="console-knowledge"),
    path("knowledge/new/", views.new, name="console-knowledge-new"),
    path("knowledge/try/", views.tester, name="console-knowledge-try"),
    path("knowledge/models/", search_models.show, name="console-search-models"),
    path("knowledge/models/save/", search_models.save, name="console-search-models-save"),
    path("knowledge/sources/", sources.listing, name="console-sources"),
    path("knowledge/sources/new/", sources.new, name="console-source-new"),
    path("knowledge/sources/<uuid:source_id>/run/", sources.run, name="console-source-run"),
    path("knowledge/sources/<uuid:source_id>/confirm/", sources.confirm, name="console-source-confirm"),
    path("knowledge/sources/<uuid:source_id>/turn/", sources.turn, name="console-source-turn"),
    path("knowledge/sources/<uuid:source_id>/remove/", sources.remove, name="console-source-remove"),
    path("knowledge/gaps/", gaps.listing, name="console-gaps"),
    path("knowledge/gaps/<uuid:topic_id>/", gaps.gap, name="console-gap"),
    path("knowledge/gaps/<uuid:topic_id>/answer/", gaps.answer, name="console-gap-answer"),
    path("knowledge/gaps/<uuid:topic_id>/dismiss/", gaps.dismiss, name="console-gap-dismiss"),
    path("knowledge/gaps/<uuid:topic_id>/reopen/", gaps.reopen, name="console-gap-reopen"),
    path("knowledge/gaps/<uuid:topic_id>/merge/", gaps.merge, name="console-gap-merge"),
    path("knowledge/<uuid:collection_id>/", views.collection, name="console-collection"),
    path("knowledge/<uuid:collection_id>/hand-in/", views.hand_in, name="console-hand-in"),
    path("knowledge/document/<uuid:document_id>/", views.document, name="console-document"),
    path("knowledge/document/<uuid:document_id>/again/", views.read_again, name="console-document-again"),
    path("knowledge/document/<uuid:document_id>/delete/", views.forget, name="console-document-delete"),
]
