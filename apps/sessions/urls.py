"""URLs of a conversation's citations and of the gate backtest (contract interfaces, HTTP)."""

from __future__ import annotations

from django.urls import path

from apps.sessions import api, gate_backtest_api

urlpatterns = [
    path("widget/v1/<str:key>/passage/<str:document_id>/", api.WidgetPassage.as_view(), name="widget-passage"),
    path("api/v1/gates/<uuid:gate_id>/dry-run", gate_backtest_api.GateDryRun.as_view(), name="api-gate-dry-run"),
]
