"""The visitor's HTTP addresses, and the dry run of gates (contract interfaces, HTTP)."""

from __future__ import annotations

from django.urls import path

from apps.sessions import api, asking_api, rehearsal_api

_CARDS = "api/v1/sessions/<uuid:session_id>/cards"

urlpatterns = [
    path("api/v1/widget/<str:key>/sessions", api.WidgetSessions.as_view(), name="widget-sessions"),
    path("widget/v1/<str:key>/passage/<str:document_id>/", api.WidgetPassage.as_view(), name="widget-passage"),
    path("secrets/<uuid:ref_id>", asking_api.Secrets.as_view(), name="secrets"),
    path(_CARDS, asking_api.SessionCards.as_view(), name="api-session-cards"),
    path(f"{_CARDS}/<uuid:card_id>", asking_api.OneSessionCard.as_view(), name="api-session-card"),
    path(f"{_CARDS}/<uuid:card_id>/secret", asking_api.TakeSecret.as_view(), name="api-session-card-secret"),
    path("api/v1/gates/<uuid:gate_id>/dry-run", rehearsal_api.GateDryRun.as_view(), name="api-gate-dry-run"),
]
