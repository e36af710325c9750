"""The addresses of imports in the REST API."""

from __future__ import annotations

from django.urls import path

from apps.imports import api

urlpatterns = [
    path("api/v1/imports", api.Imports.as_view(), name="api-imports"),
    path("api/v1/imports/<uuid:run_id>", api.OneImport.as_view(), name="api-import"),
]
