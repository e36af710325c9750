"""The addresses of preferences in the REST API."""

from __future__ import annotations

from django.urls import path

from apps.suggestions import api

_PREFERENCES = "api/v1/deployments/<uuid:deployment_id>/preferences"

urlpatterns = [
    path(_PREFERENCES, api.Preferences.as_view(), name="api-preferences"),
    path(f"{_PREFERENCES}/<uuid:preference_id>", api.OnePreference.as_view(), name="api-preference"),
]
