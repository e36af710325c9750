"""The addresses of memories in the REST API (contract interfaces, HTTP)."""

from __future__ import annotations

from django.urls import path

from apps.memory import api

urlpatterns = [
    path("api/v1/memories", api.Memories.as_view(), name="api-memories"),
    path("api/v1/memories/bundle", api.Bundle.as_view(), name="api-memory-bundle"),
    path("api/v1/memories/<uuid:memory_id>", api.OneMemory.as_view(), name="api-memory"),
]
