"""The addresses of events in the REST API."""

from __future__ import annotations

from django.urls import path

from apps.events import api, webhooks_api

_HOOK = "api/v1/webhooks/<uuid:webhook_id>"

urlpatterns = [
    path("api/v1/events", api.Events.as_view(), name="api-events"),
    path("api/v1/event-types", api.EventTypes.as_view(), name="api-event-types"),
    path(f"{_HOOK}/rotate-secret", webhooks_api.RotateSecret.as_view(), name="api-webhook-rotate"),
    path(f"{_HOOK}/test", webhooks_api.SendTest.as_view(), name="api-webhook-test"),
    path(f"{_HOOK}/replay", webhooks_api.Replay.as_view(), name="api-webhook-replay"),
]
