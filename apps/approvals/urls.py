"""URLs of cards in the REST API (contract interfaces, HTTP)."""

from __future__ import annotations

from django.urls import path

from apps.approvals import api, timings_api

urlpatterns = [
    path("api/v1/cards", api.Cards.as_view(), name="api-cards"),
    path("api/v1/cards/<uuid:card_id>", api.OneCard.as_view(), name="api-card"),
    path("api/v1/cards/<uuid:card_id>/decision", api.OneCardDecision.as_view(), name="api-card-decision"),
    path("api/v1/cards/<uuid:card_id>/decision-links", api.CardDecisionLinks.as_view(), name="api-card-links"),
    path("api/v1/cards/<uuid:card_id>/assignee", api.CardAssignee.as_view(), name="api-card-assignee"),
    path("api/v1/cards/<uuid:card_id>/take-back", api.TakeBack.as_view(), name="api-card-take-back"),
    path("api/v1/card-timings", timings_api.CardTimings.as_view(), name="api-card-timings"),
    path(
        "api/v1/deployments/<uuid:deployment_id>/card-timings",
        timings_api.DeploymentCardTimings.as_view(),
        name="api-deployment-card-timings",
    ),
    path("api/v1/client-keys", api.ClientKeys.as_view(), name="api-client-keys"),
    path("api/v1/client-keys/<str:key_id>", api.OneClientKey.as_view(), name="api-client-key"),
]
