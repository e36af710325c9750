"""The visitor's HTTP addresses, and the dry run of gates (contract interfaces, HTTP)."""

from __future__ import annotations

from django.urls import path

from apps.sessions import api, rehearsal_api

urlpatterns = [
    path("api/v1/widget/<str:key>/sessions", api.WidgetSessions.as_view(), name="widget-sessions"),
    path("widget/v1/<str:key>/passage/<str:document_id>/", api.WidgetPassage.as_view(), name="widget-passage"),
    path("api/v1/gates/<uuid:gate_id>/dry-run", rehearsal_api.GateDryRun.as_view(), name="api-gate-dry-run"),
]
