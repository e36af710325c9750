"""The addresses of documents, gaps and sources in the REST API."""

from __future__ import annotations

from django.urls import path

from apps.knowledge import api, documents_api, sources_api

_KNOWLEDGE = "api/v1/knowledge"

urlpatterns = [
    path(
        f"{_KNOWLEDGE}/collections/<uuid:collection_id>/documents",
        documents_api.Documents.as_view(),
        name="api-documents",
    ),
    path(
        f"{_KNOWLEDGE}/collections/<uuid:collection_id>/submissions",
        documents_api.Submissions.as_view(),
        name="api-submissions",
    ),
    path(
        f"{_KNOWLEDGE}/submissions/<uuid:submission_id>", documents_api.OneSubmission.as_view(), name="api-submission"
    ),
    path(f"{_KNOWLEDGE}/documents/<uuid:document_id>", documents_api.OneDocument.as_view(), name="api-document"),
    path(
        f"{_KNOWLEDGE}/documents/<uuid:document_id>/versions/<int:number>",
        documents_api.OneVersion.as_view(),
        name="api-document-version",
    ),
    path(
        f"{_KNOWLEDGE}/documents/<uuid:document_id>/refresh",
        documents_api.RefreshDocument.as_view(),
        name="api-document-refresh",
    ),
    path(f"{_KNOWLEDGE}/search-models", documents_api.SearchModels.as_view(), name="api-search-models"),
    path("api/v1/knowledge/sources", sources_api.Sources.as_view(), name="api-sources"),
    path("api/v1/knowledge/sources/<uuid:source_id>", sources_api.Source.as_view(), name="api-source"),
    path("api/v1/knowledge/sources/<uuid:source_id>/run", sources_api.SourceRun.as_view(), name="api-source-run"),
    path(
        "api/v1/knowledge/sources/<uuid:source_id>/confirm",
        sources_api.SourceConfirmation.as_view(),
        name="api-source-confirm",
    ),
    path("api/v1/knowledge/gaps", api.Gaps.as_view(), name="api-gaps"),
    path("api/v1/knowledge/gaps/<uuid:topic_id>", api.Gap.as_view(), name="api-gap"),
    path("api/v1/knowledge/gaps/<uuid:topic_id>/answer", api.GapAnswer.as_view(), name="api-gap-answer"),
    path("api/v1/knowledge/gaps/<uuid:topic_id>/dismiss", api.GapDismissal.as_view(), name="api-gap-dismiss"),
    path("api/v1/knowledge/gaps/<uuid:topic_id>/reopen", api.GapReopening.as_view(), name="api-gap-reopen"),
    path("api/v1/knowledge/gaps/<uuid:topic_id>/merge", api.GapMerge.as_view(), name="api-gap-merge"),
]
