"""Client of outside tool servers: the official MCP client of either protocol era, over the network or with a program in
the sandbox.

Each question opens a connection of its own and closes it; nothing is kept between two. Sampling, elicitation and roots
are not offered. Called outside of every transaction; every failure is a `ServerFailed` with a code, never with a
server's own words.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import mcp_types as types
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError

from apps.toolservers import rules
from apps.toolservers.enums import Transport
from apps.toolservers.http_client import client_for
from apps.toolservers.schemas import Address, Descriptor, Reply, ServerFailed
from apps.toolservers.stdio_transport import ProgramTransport
from kernel.errors import SilasError
from kernel.http.resolver import RequestRefused

LIST_SECONDS, CONNECT_SECONDS = 20.0, 20.0
_MOST_PAGES = 20
_MOST_EVENT_BYTES = 1_000_000
T = TypeVar("T")


async def list_tools(address: Address) -> tuple[Descriptor, ...]:
    """Return everything the server lists, within our limits. Raises `ServerFailed`."""
    return await _with_deadline(LIST_SECONDS, _list, address)


async def call_tool(address: Address, name: str, args: Mapping[str, object], *, digest: str, seconds: float) -> Reply:
    """Call the tool if it is still described as it was accepted (`digest`). Raises `ServerFailed`; once `asked` is set,
    the call may have had an effect."""
    progress = _Progress()

    async def ask(address: Address) -> Reply:
        async with _connected(address, seconds) as client:
            # Within the call's own connection: checked earlier, the description could have changed since (rug pull).
            _require_unchanged(await _list_all(client), name, digest)
            # From here on the call may have had an effect, even if it fails.
            progress.asked = True
            result = await client.call_tool(name, dict(args))
            return _reply(result)

    return await _with_deadline(seconds, ask, address, progress)


class _Progress:
    asked = False


async def _list(address: Address) -> tuple[Descriptor, ...]:
    async with _connected(address, LIST_SECONDS) as client:
        return await _list_all(client)


async def _with_deadline(
    seconds: float, ask: Callable[[Address], Awaitable[T]], address: Address, progress: _Progress | None = None
) -> T:
    """Ask within a time limit, and turn every failure into one code."""
    progress = progress or _Progress()
    try:
        async with asyncio.timeout(seconds):
            return await ask(address)
    except TimeoutError:
        raise ServerFailed("too_slow", asked=progress.asked) from None
    except ServerFailed:
        raise
    except Exception as error:  # noqa: BLE001 (any fault of a server fails this call alone)
        failure = _root_failure(error)
        if isinstance(failure, ServerFailed):
            raise failure from None
        raise ServerFailed(failure, asked=progress.asked) from None


class _ProgramEnded(Exception):
    """The program ended; `code` says why."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


def _root_failure(error: BaseException) -> str | ServerFailed:
    """Return the failure at the bottom of a group or chain of errors, as a code."""
    if isinstance(error, ServerFailed):
        return error
    if isinstance(error, RequestRefused | SilasError | _ProgramEnded):
        return error.code
    if isinstance(error, BaseExceptionGroup):
        failures = [_root_failure(failure) for failure in error.exceptions]
        return next((failure for failure in failures if failure != "no_answer"), "no_answer")
    if isinstance(error, MCPError):
        return "server_error"
    cause = error.__cause__ or error.__context__
    return _root_failure(cause) if cause is not None else "no_answer"


@asynccontextmanager
async def _connected(address: Address, seconds: float) -> AsyncIterator[Client]:
    if address.transport == Transport.STDIO:
        async with _connected_program(address, seconds) as client:
            yield client
        return
    headers = {"Authorization": f"Bearer {address.secret}"} if address.secret else {}
    async with client_for(address.url, headers) as http:
        transport = streamable_http_client(address.url, http_client=http, max_sse_event_size=_MOST_EVENT_BYTES)
        async with Client(transport, read_timeout_seconds=CONNECT_SECONDS, cache=None) as client:
            yield client


@asynccontextmanager
async def _connected_program(address: Address, seconds: float) -> AsyncIterator[Client]:
    """Connect to a program. The reason why it ended says more than that its stream was closed."""
    running = ProgramTransport(address, seconds)
    try:
        async with Client(running.streams(), read_timeout_seconds=CONNECT_SECONDS, cache=None) as client:
            yield client
    except Exception as error:
        if isinstance(_root_failure(error), ServerFailed) or not running.over:
            raise
        raise _ProgramEnded(running.over) from None


async def _list_all(client: Client) -> tuple[Descriptor, ...]:
    """Return every page of the list. Two tools of one name are refused: a call could not say which is meant."""
    tools: dict[str, Descriptor] = {}
    cursor: str | None = None
    for _ in range(_MOST_PAGES):
        page = await client.list_tools(cursor=cursor)
        for tool in page.tools:
            descriptor = descriptor_of(tool)
            if descriptor.name in tools:
                raise ServerFailed("name_twice")
            tools[descriptor.name] = descriptor
        if len(tools) > rules.MOST_TOOLS:
            raise ServerFailed("too_many_tools")
        cursor = page.next_cursor
        if not cursor:
            return tuple(tools.values())
    raise ServerFailed("too_many_tools")


def descriptor_of(tool: types.Tool) -> Descriptor:
    raw: dict[str, Any] = tool.model_dump(mode="json", by_alias=True, exclude_none=True)
    annotations = raw.get("annotations") or {}
    description, schema = str(raw.get("description", "")), raw.get("inputSchema") or {}
    try:
        digest, problem = rules.descriptor_digest(raw), rules.problem_of(tool.name, description, schema)
    except (ValueError, RecursionError, TypeError):
        digest, problem = rules.descriptor_digest({"name": tool.name}), "it cannot be read"
    title = str(raw.get("title") or annotations.get("title") or "")[:200]
    return Descriptor(tool.name[:128], title, description, schema, annotations, digest, problem)


def _require_unchanged(listed: tuple[Descriptor, ...], name: str, digest: str) -> None:
    present = next((tool for tool in listed if tool.name == name), None)
    if present is None:
        raise ServerFailed("tool_gone")
    if present.digest != digest:
        raise ServerFailed("tool_changed", seen=present)


def _reply(result: types.CallToolResult) -> Reply:
    texts = tuple(block.text for block in result.content if isinstance(block, types.TextContent))
    return Reply(texts, len(result.content) - len(texts), result.structured_content, bool(result.is_error))
