"""What does a server list now? Asked outside of every scope, between two short ones. By a person's wish, and by nobody
else: a call looks at its own tool again by itself."""

from __future__ import annotations

import asyncio
from uuid import UUID

from apps.toolservers import queries, services
from apps.toolservers.http_client import ADDRESS_ERRORS
from apps.toolservers.schemas import ServerFailed
from kernel.errors import SilasError
from kernel.tenancy import tenant_scope

_MESSAGES = ADDRESS_ERRORS | {
    "no_answer": "The server did not answer.",
    "too_slow": "The server took too long.",
    "server_error": "The server answered with an error, or is no MCP server.",
    "too_many_tools": "The server lists more tools than can be looked at.",
    "name_twice": "The server lists two tools of one name.",
    "answer_too_large": "The server's answer is too large.",
    "answer_packed": "The server packs its answer, which is not read here.",
    "no_mcp": "The program says something that is no message of MCP.",
    "program_ended": "The program ended before it answered.",
    "program_stopped": "The program went beyond its limits and was stopped.",
    "program_secret": "The program said its token aloud and was stopped.",
    "sandbox_unavailable": "This machine cannot run a program apart from everything else.",
    "skill_missing": "The skill that the program belongs to is not in use.",
    "tool_gone": "The server lists this tool no longer.",
    "tool_changed": "The server describes this tool differently now.",
}
_UNKNOWN_FAILURE = "The server could not be asked."


def failure_message(code: str) -> str:
    return _MESSAGES.get(code, _UNKNOWN_FAILURE) if code else ""


def refresh_server(tenant_id: UUID, server_id: UUID, *, actor: str) -> None:
    """List the server's tools and write down what it says. Raises `NotFound`; `SilasError("tool_server_unreachable")`
    502 with our sentence when it cannot be asked."""
    from apps.toolservers.client import list_tools  # brings the SDK: only who asks a server pays for it

    with tenant_scope(tenant_id):
        address = queries.address_of(server_id)
    try:
        listed = asyncio.run(list_tools(address))
    except ServerFailed as no:
        with tenant_scope(tenant_id):
            services.record_failure(server_id, no.code, actor=actor)
        raise SilasError(
            "tool_server_unreachable", failure_message(no.code), extra={"code": no.code}, status=502
        ) from None
    with tenant_scope(tenant_id):
        services.store_listing(server_id, listed, actor=actor)
