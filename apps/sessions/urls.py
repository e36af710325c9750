"""The visitor's HTTP addresses (contract interfaces, HTTP)."""

from __future__ import annotations

from django.urls import path

from apps.sessions import api

urlpatterns = [
    path("api/v1/widget/<str:key>/sessions", api.WidgetSessions.as_view(), name="widget-sessions"),
    path("widget/v1/<str:key>/passage/<str:document_id>/", api.WidgetPassage.as_view(), name="widget-passage"),
]
