"""Ask a server what it lists now, at a person's request; outside of every scope, between two short ones."""

from __future__ import annotations

import asyncio
from uuid import UUID

from apps.toolservers import queries, services
from apps.toolservers.http_client import ADDRESS_ERRORS
from apps.toolservers.loading import load_client
from apps.toolservers.schemas import ServerFailed
from kernel.error_codes import ErrorCode
from kernel.errors import SilasError
from kernel.tenancy import tenant_scope

_MESSAGES = ADDRESS_ERRORS | {
    "no_answer": "The server did not answer.",
    "too_slow": "The server took too long.",
    "server_error": "The server answered with an error, or isn't an MCP server.",
    "too_many_tools": "The server lists too many tools.",
    "name_twice": "The server lists two tools with the same name.",
    "answer_too_large": "The server's answer is too large.",
    "answer_packed": "The server compresses its answer, which isn't supported here.",
    "no_mcp": "The program printed something that isn't an MCP message.",
    "program_ended": "The program ended before it answered.",
    "program_stopped": "The program exceeded its limits and was stopped.",
    "program_secret": "The program printed its token and was stopped.",
    "sandbox_unavailable": "This machine can't run programs in a sandbox.",
    "skill_missing": "The skill that contains the program is not in use.",
    "tool_gone": "The server no longer lists this tool.",
    "tool_changed": "The server's description of this tool has changed.",
}
_UNKNOWN_FAILURE = "The server could not be asked."


def failure_message(code: str) -> str:
    """Return our sentence about a failure's code; "" for none."""
    return _MESSAGES.get(code, _UNKNOWN_FAILURE) if code else ""


def refresh_server(tenant_id: UUID, server_id: UUID, *, actor: str) -> None:
    """List the server's tools and store what it says. Raises `NotFound`; `SilasError("tool_server_unreachable")` 502
    with our own sentence when it cannot be asked."""
    with tenant_scope(tenant_id):
        address = queries.address_of(server_id)
    try:
        listed = asyncio.run(load_client().list_tools(address))
    except ServerFailed as failure:
        with tenant_scope(tenant_id):
            services.record_failure(server_id, failure.code, actor=actor)
        raise SilasError(
            ErrorCode.TOOL_SERVER_UNREACHABLE, failure_message(failure.code), extra={"code": failure.code}
        ) from None
    with tenant_scope(tenant_id):
        services.store_listing(server_id, listed, actor=actor)
