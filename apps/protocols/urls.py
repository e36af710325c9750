"""The addresses at which outside agents talk with a deployment."""

from __future__ import annotations

from django.urls import path

from apps.protocols import a2a, agui, mcp_server

_AGENT = "api/v1/agents/<uuid:deployment_id>"

urlpatterns = [
    path(f"{_AGENT}/agui", agui.AgentRuns.as_view(), name="api-agents-agui"),
    path(f"{_AGENT}/a2a", a2a.AgentCalls.as_view(), name="api-agents-a2a"),
    path(f"{_AGENT}/.well-known/agent-card.json", a2a.AgentCard.as_view(), name="api-agents-a2a-card"),
    path(
        ".well-known/oauth-protected-resource/mcp/deployments/<str:key>",
        mcp_server.protected_resource,
        name="mcp-protected-resource",
    ),
]
