"""The addresses of personalities in the REST API (contract interfaces, HTTP)."""

from __future__ import annotations

from django.urls import path

from apps.persona import api

urlpatterns = [
    path("api/v1/personas/<uuid:deployment_id>", api.Persona.as_view(), name="api-persona"),
    path("api/v1/personas/<uuid:deployment_id>/preset", api.ChosenPreset.as_view(), name="api-persona-preset"),
    path("api/v1/personas/<uuid:deployment_id>/tune", api.Tuning.as_view(), name="api-persona-tune"),
    path("api/v1/personas/<uuid:deployment_id>/feedback", api.Feedback.as_view(), name="api-persona-feedback"),
    path("api/v1/personas/<uuid:deployment_id>/events", api.Events.as_view(), name="api-persona-events"),
]
