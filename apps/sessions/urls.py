"""URLs of the visitor's API and of the gate backtest (contract interfaces, HTTP)."""

from __future__ import annotations

from django.urls import path

from apps.sessions import api, gate_backtest_api, prompts_api, visitors_api

_CARDS = "api/v1/sessions/<uuid:session_id>/cards"

urlpatterns = [
    path("api/v1/widget/<str:key>/sessions", api.WidgetSessions.as_view(), name="widget-sessions"),
    path("widget/v1/<str:key>/passage/<str:document_id>/", api.WidgetPassage.as_view(), name="widget-passage"),
    path("secrets/<uuid:ref_id>", prompts_api.Secrets.as_view(), name="secrets"),
    path(_CARDS, prompts_api.SessionCards.as_view(), name="api-session-cards"),
    path(f"{_CARDS}/<uuid:card_id>", prompts_api.OneSessionCard.as_view(), name="api-session-card"),
    path(f"{_CARDS}/<uuid:card_id>/secret", prompts_api.TakeSecret.as_view(), name="api-session-card-secret"),
    path("api/v1/widget/<str:key>/offers", visitors_api.WidgetOffers.as_view(), name="widget-offers"),
    path("api/v1/widget/<str:key>/form", visitors_api.WidgetForm.as_view(), name="widget-form"),
    path("api/v1/widget/<str:key>/files", visitors_api.WidgetFiles.as_view(), name="widget-files"),
    path("api/v1/widget/<str:key>/files/<uuid:file_id>", visitors_api.WidgetFile.as_view(), name="widget-file"),
    path("api/v1/widget/<str:key>/conversations", visitors_api.WidgetConversations.as_view(), name="widget-list"),
    path("api/v1/widget/<str:key>/transcripts", visitors_api.WidgetTranscripts.as_view(), name="widget-transcripts"),
    path(
        "api/v1/widget/<str:key>/transcripts/<uuid:request_id>",
        visitors_api.WidgetTranscript.as_view(),
        name="widget-transcript",
    ),
    path("api/v1/widget/<str:key>/cards/<uuid:card_id>", prompts_api.WidgetCard.as_view(), name="widget-card"),
    path("api/v1/widget/<str:key>/rating", visitors_api.WidgetRating.as_view(), name="widget-rating"),
    path("api/v1/gates/<uuid:gate_id>/dry-run", gate_backtest_api.GateDryRun.as_view(), name="api-gate-dry-run"),
]
