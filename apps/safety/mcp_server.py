"""MCP server of the safety loop, over streamable HTTP (`/mcp/safety`) and stdio, on the official SDK.

The tools are generated from the declarations that route requests. The API key is authenticated on every request, so
that a revoked key stops working at once.
"""

from __future__ import annotations

import json
import os
import re
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.core.exceptions import ImproperlyConfigured
from mcp.server.lowlevel import Server
from mcp.types import (
    CallToolRequestParams,
    CallToolResult,
    ListToolsResult,
    PaginatedRequestParams,
    TextContent,
    Tool,
    ToolAnnotations,
)

from apps.safety.enums import Endpoint
from apps.safety.schemas import Principal
from apps.safety.wire import OPERATIONS, handle_request
from apps.safety.wire.introspection import LIMITS, tool_name
from apps.tenants.enums import KeyScope
from apps.tenants.queries import api_key
from kernel import mcp_transport
from kernel.error_codes import ErrorCode
from kernel.errors import SilasError
from kernel.language import gettext
from kernel.mcp_transport import Application
from kernel.tenancy import in_thread

PATH = "/mcp/safety"
MODES = ("semantic", "single", "all")
# Failures that an agent can correct by itself are not reported as tool errors (contract safety-loop 1, G15).
RECOVERABLE = frozenset(
    {
        "NOT_FOUND_RESOURCE",
        "NOT_FOUND_OPERATION",
        "VALIDATION_MISSING_PARAM",
        "VALIDATION_INVALID_TYPE",
        "VALIDATION_INVALID_VALUE",
        "VALIDATION_UNKNOWN_PARAM",
        "VALIDATION_WRONG_ENDPOINT",
        "PERMISSION_DENIED",
        "RATE_LIMIT_EXCEEDED",
        "CONFIRMATION_REQUIRED",
    }
)
_PREFIX = re.compile(r"(?:[a-z0-9_]{0,18}_)?\Z")
CALLER = "silas.safety.caller"


@dataclass(frozen=True)
class Caller:
    """Tenant and principal of an API key."""

    tenant_id: UUID
    principal: Principal


def authenticate_key(key: str) -> Caller:
    """Look the key up. Raises 401 `not_authenticated` if it is unknown or revoked, 403 `forbidden_scope` if it may not
    report."""
    row = api_key(key)
    if row is None:
        raise SilasError(ErrorCode.NOT_AUTHENTICATED, gettext("Unknown API key."))
    if row.scopes and KeyScope.SAFETY_AGENT not in row.scopes:
        raise SilasError(ErrorCode.FORBIDDEN_SCOPE, gettext("This API key doesn't have the required scope."))
    principal = Principal(f"api_key:{row.pk}", may_confirm=KeyScope.SAFETY_CONFIRM in row.scopes)
    return Caller(row.tenant_id, principal)


def surface_from_environment() -> tuple[str, str]:
    """Read which tools are offered, and the prefix of their names. Raises `ImproperlyConfigured`."""
    mode = os.environ.get("MCP_AQL_ENDPOINT_MODE", "semantic")
    prefix = os.environ.get("MCP_AQL_TOOL_PREFIX", "")
    if mode not in MODES:
        raise ImproperlyConfigured("E_MCP_MODE: MCP_AQL_ENDPOINT_MODE must be semantic, single or all")
    if not _PREFIX.match(prefix):
        raise ImproperlyConfigured("E_MCP_PREFIX: lower case, digits, _, ending in _, under 20 characters")
    return mode, prefix


def tools(mode: str, prefix: str) -> dict[str, tuple[Endpoint | None, Tool]]:
    """Tools by name, each with the endpoint of its calls."""
    offered: list[Endpoint | None] = [] if mode == "single" else list(Endpoint)
    offered += [None] if mode != "semantic" else []
    named = [(endpoint, _tool(endpoint, prefix)) for endpoint in offered]
    return {tool.name: (endpoint, tool) for endpoint, tool in named}


def _tool(endpoint: Endpoint | None, prefix: str) -> Tool:
    operations = [operation for operation in OPERATIONS.values() if endpoint in (None, operation.endpoint)]
    listed = "\n".join(f"- {operation.name}: {operation.description}" for operation in operations)
    example = json.dumps(
        {
            "operation": operations[0].name,
            "params": {param.name: "..." for param in operations[0].params if param.required},
        }
    )
    description = f"The execution safety loop. Call 'introspect' to discover everything.\n{listed}\nExample: {example}"
    reads = endpoint is Endpoint.READ
    destructive = endpoint in (None, Endpoint.EXECUTE)
    return Tool(
        name=tool_name(endpoint, prefix),
        description=description,
        inputSchema={
            "type": "object",
            "properties": {
                "operation": {"type": "string", "enum": [operation.name for operation in operations]},
                "params": {"type": "object", "additionalProperties": True},
            },
            "required": ["operation"],
            "additionalProperties": True,
        },
        annotations=ToolAnnotations(readOnlyHint=reads, destructiveHint=destructive),
    )


def create_server(mode: str, prefix: str, key: str = "") -> Server[Any]:
    """Create a server of these tools. Over stdio every call uses `key`; over HTTP `with_safety` puts the caller in the
    scope."""
    offered = tools(mode, prefix)

    async def list_tools(_: object, __: PaginatedRequestParams | None) -> ListToolsResult:
        return ListToolsResult(tools=[tool for _, tool in offered.values()])

    async def call_tool(context: Any, call: CallToolRequestParams) -> CallToolResult:
        if call.name not in offered:
            return _tool_result(_failure("NOT_FOUND_OPERATION", "There is no such tool."))
        endpoint, _tool_of = offered[call.name]

        def answer() -> dict[str, Any]:
            try:
                caller = authenticate_key(key) if key else context.request.scope[CALLER]
            except SilasError:
                return _failure("PERMISSION_DENIED", "This API key may not report to the safety loop.")
            return handle_request(
                caller.tenant_id,
                caller.principal,
                call.arguments or {},
                endpoint=endpoint,
                surface=mode,
                prefix=prefix,
            )

        return _tool_result(await in_thread(answer))

    return Server("silas-safety", version="1", on_list_tools=list_tools, on_call_tool=call_tool)


def _failure(code: str, message: str) -> dict[str, object]:
    return {"success": False, "error": {"code": code, "message": message}}


def _tool_result(answer: dict[str, Any]) -> CallToolResult:
    failed = not answer["success"] and answer["error"]["code"] not in RECOVERABLE
    return CallToolResult(content=[TextContent(type="text", text=json.dumps(answer))], isError=failed)


def with_safety(application: Application) -> Application:
    """Wrap the ASGI application so that it serves the safety loop at `PATH`."""

    async def serve(scope: dict[str, Any], receive: Any, send: object) -> None:
        if scope["type"] != "http" or scope["path"].rstrip("/") != PATH:
            await application(scope, receive, send)
            return
        if scope["method"] != "POST":
            await mcp_transport.refuse(send, SilasError(ErrorCode.METHOD_NOT_ALLOWED))
            return
        try:
            caller = await in_thread(authenticate_key, mcp_transport.bearer_of(scope))
        except SilasError as problem:
            await mcp_transport.refuse(send, problem)
            return
        surface = surface_from_environment()
        await mcp_transport.serve(
            (PATH, *surface),
            lambda: create_server(*surface),
            {**scope, CALLER: caller},
            receive,
            send,
            max_bytes=LIMITS["max_request_bytes"],
        )

    return serve
