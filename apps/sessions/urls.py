"""The visitor's HTTP addresses (contract interfaces, HTTP)."""

from __future__ import annotations

from django.urls import path

from apps.sessions import api

urlpatterns = [
    path("api/v1/widget/<str:key>/sessions", api.WidgetSessions.as_view(), name="widget-sessions"),
]
