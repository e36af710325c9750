"""The addresses of the queue in the REST API."""

from __future__ import annotations

from django.urls import path

from apps.bus import api

_DEAD = "api/v1/dead-letters"

urlpatterns = [
    path("api/v1/queues", api.Queues.as_view(), name="api-queues"),
    path(_DEAD, api.DeadLetters.as_view(), name="api-dead-letters"),
    path(f"{_DEAD}/<uuid:message_id>/retry", api.RetryDeadLetter.as_view(), name="api-dead-letter-retry"),
    path(f"{_DEAD}/<uuid:message_id>/drop", api.DropDeadLetter.as_view(), name="api-dead-letter-drop"),
]
