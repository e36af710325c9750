"""The addresses of assistance in the REST API (contract interfaces, HTTP)."""

from __future__ import annotations

from django.urls import path

from apps.copilot import api

_ASSISTANCE = "api/v1/sessions/<uuid:session_id>/assistance"

urlpatterns = [
    path(_ASSISTANCE, api.AssistanceOfConversation.as_view(), name="api-session-assistance"),
    path(
        f"{_ASSISTANCE}/<uuid:assistance_id>/cancel",
        api.CancelAssistance.as_view(),
        name="api-session-assistance-cancel",
    ),
]
