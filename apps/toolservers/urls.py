"""URLs of outside tool servers in the REST API."""

from __future__ import annotations

from django.urls import path

from apps.toolservers import api, search_api

_ONE = "api/v1/mcp-servers/<uuid:server_id>"
_TOOL = f"{_ONE}/tools/<uuid:tool_id>"

urlpatterns = [
    path("api/v1/web-search", search_api.WebSearchSettings.as_view(), name="api-web-search"),
    path("api/v1/mcp-servers", api.ToolServers.as_view(), name="api-tool-servers"),
    path(_ONE, api.OneToolServer.as_view(), name="api-tool-server"),
    path(f"{_ONE}/look", api.Looking.as_view(), name="api-tool-server-look"),
    path(f"{_TOOL}/accept", api.Accepting.as_view(), name="api-outside-tool-accept"),
    path(f"{_TOOL}/suspend", api.Suspending.as_view(), name="api-outside-tool-suspend"),
]
