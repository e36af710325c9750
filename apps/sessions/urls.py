"""URLs of a conversation's citations (contract interfaces, HTTP), the knowledge
that is searched and the styles that are compared."""

from __future__ import annotations

from django.urls import path

from apps.sessions import api, knowledge_api, styles_api

urlpatterns = [
    path("api/v1/knowledge/collections", knowledge_api.Collections.as_view(), name="api-collections"),
    path(
        "api/v1/knowledge/collections/<uuid:collection_id>",
        knowledge_api.OneCollection.as_view(),
        name="api-collection",
    ),
    path("api/v1/knowledge/search", knowledge_api.Search.as_view(), name="api-knowledge-search"),
    path(
        "api/v1/deployments/<uuid:deployment_id>/compare-styles",
        styles_api.CompareStyles.as_view(),
        name="api-compare-styles",
    ),
    path("widget/v1/<str:key>/passage/<str:document_id>/", api.WidgetPassage.as_view(), name="widget-passage"),
]
