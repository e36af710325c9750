"""URLs of connections (contract interfaces, HTTP)."""

from __future__ import annotations

from django.urls import path

from apps.connections import api

_ONE = "api/v1/connections/<uuid:connection_id>"

urlpatterns = [
    path("connections/callback", api.callback, name="connections-callback"),
    path("api/v1/connections", api.Connections.as_view(), name="api-connections"),
    path(_ONE, api.OneConnection.as_view(), name="api-connection"),
    path(f"{_ONE}/pause", api.PauseConnection.as_view(), name="api-connection-pause"),
    path(f"{_ONE}/resume", api.ResumeConnection.as_view(), name="api-connection-resume"),
    path(f"{_ONE}/choose", api.ChooseConnection.as_view(), name="api-connection-choose"),
    path(f"{_ONE}/widen", api.WidenConnection.as_view(), name="api-connection-widen"),
    path(f"{_ONE}/reconnect", api.ReconnectConnection.as_view(), name="api-connection-reconnect"),
    path(f"{_ONE}/setup", api.ConnectionSetup.as_view(), name="api-connection-setup"),
]
