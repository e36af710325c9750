"""URLs of a conversation's citations (contract interfaces, HTTP)."""

from __future__ import annotations

from django.urls import path

from apps.sessions import api

urlpatterns = [
    path("widget/v1/<str:key>/passage/<str:document_id>/", api.WidgetPassage.as_view(), name="widget-passage"),
]
