"""The addresses at which outside agents talk with a deployment."""

from __future__ import annotations

from django.http import HttpRequest, JsonResponse
from django.urls import path

from apps.protocols import a2a, agui
from kernel.first_imports import FIRST_IMPORTS


def _protected_resource(request: HttpRequest, key: str) -> JsonResponse:
    with FIRST_IMPORTS:
        from apps.protocols import mcp_server  # brings the SDK: only who asks for a server pays for it

    return mcp_server.protected_resource(request, key)


_AGENT = "api/v1/agents/<uuid:deployment_id>"

urlpatterns = [
    path(f"{_AGENT}/agui", agui.AgentRuns.as_view(), name="api-agents-agui"),
    path(f"{_AGENT}/a2a", a2a.AgentCalls.as_view(), name="api-agents-a2a"),
    path(f"{_AGENT}/.well-known/agent-card.json", a2a.AgentCard.as_view(), name="api-agents-a2a-card"),
    path(
        ".well-known/oauth-protected-resource/mcp/deployments/<str:key>",
        _protected_resource,
        name="mcp-protected-resource",
    ),
]
