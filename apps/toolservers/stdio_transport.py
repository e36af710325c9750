"""Transport of the official MCP client to a program in the sandbox: one message a line, over standard input and output.

The program sees its skill's approved files and nothing else, reaches the places that its owner listed, and gets its
token from an inherited descriptor. It lives for one connection, because a program that stays would keep state between
two companies' calls: the opener ends it, and the sandbox ends it when time
is up. A line that is no message ends it too.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import threading
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import anyio
import mcp_types as types
from mcp.shared.message import SessionMessage

from apps.toolservers.http_client import MOST_BYTES
from apps.toolservers.schemas import Address
from sandbox import SandboxResult, SandboxSpec, Session, SessionClosed, open_session

LONGEST_LINE = 1_000_000
_LOOK_SECONDS, _GRACE_SECONDS = 0.5, 1.0
_HIDDEN = ("skill/checks", "skill/guards")
_CODES = {
    "": "program_ended",
    "line_limit": "answer_too_large",
    "output_limit": "answer_too_large",
    "timeout": "too_slow",
    "secret_leaked": "program_secret",
}


def sandbox_spec(address: Address, seconds: float) -> SandboxSpec:
    """Return the launch of the program, with what it gets and no more."""
    assert address.folder is not None
    script, *args = address.argv
    return SandboxSpec(
        # Isolated: neither the environment nor installed packages change what the script imports.
        ["python3", "-I", "-S", f"/sandbox/skill/{script}", *args],
        read_only={"skill": address.folder},
        hidden=_HIDDEN,
        egress=address.egress,
        secret=json.dumps({"token": address.secret}).encode() if address.secret else None,
        timeout_seconds=seconds + _GRACE_SECONDS,
        output_bytes=MOST_BYTES,
        line_bytes=LONGEST_LINE,
    )


# The client's own transport would start the program beside us, with our user, files and network.
class ProgramTransport:
    """One program for one connection. `over`: the code of why it ended; empty while it runs."""

    def __init__(self, address: Address, seconds: float) -> None:
        self.over = ""
        self._held = _SandboxSession(sandbox_spec(address, seconds))

    def streams(self) -> AbstractAsyncContextManager[Any]:
        """Return the client's transport: the streams of messages from and to the program."""
        return self._streams()

    @asynccontextmanager
    async def _streams(self) -> AsyncIterator[object]:
        answers, incoming = anyio.create_memory_object_stream[SessionMessage | Exception](0)
        outgoing, requests = anyio.create_memory_object_stream[SessionMessage](0)
        try:
            await self._held.begin()
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._listen, answers)
                tasks.start_soon(self._tell, requests, answers)
                yield incoming, outgoing
                tasks.cancel_scope.cancel()
        finally:
            for end in (answers, incoming, outgoing, requests):
                end.close()
            await self._held.end()

    async def _listen(self, answers: Any) -> None:
        async with answers:
            while not self.over:
                line = await self._held.line()
                if line is None:
                    self.over = await self._held.code() if self._held.is_over else ""
                elif line.strip():
                    await self._pass_on(answers, line)

    async def _pass_on(self, answers: Any, line: str) -> None:
        try:
            message = types.jsonrpc_message_adapter.validate_json(line, by_name=False)
        except ValueError:
            self.over = "no_mcp"
            return
        if isinstance(message, types.JSONRPCNotification):
            return  # only answers to requests are used
        with contextlib.suppress(anyio.ClosedResourceError, anyio.BrokenResourceError):
            await answers.send(SessionMessage(message))

    async def _tell(self, requests: Any, answers: Any) -> None:
        async with requests:
            async for request in requests:
                try:
                    await self._held.tell(request.message.model_dump_json(by_alias=True, exclude_unset=True))
                except SessionClosed:
                    self.over = self.over or await self._held.code()
                    answers.close()
                    return


class _SandboxSession:
    """A sandbox session whose blocking calls run in threads, beside the event loop. It is always ended: one that starts
    only after its end was requested ends at once."""

    def __init__(self, spec: SandboxSpec) -> None:
        self._spec = spec
        self._threads = ThreadPoolExecutor(4, thread_name_prefix="tool-server")
        self._lock, self._telling = threading.Lock(), threading.Lock()
        self._talk: Session | None = None
        self._gone = False

    async def begin(self) -> None:
        """Raises `SandboxUnavailable`."""
        await self._in_thread(self._begin)

    async def line(self) -> str | None:
        text: str | None = await self._in_thread(self._open.read_line, _LOOK_SECONDS)
        return text

    async def tell(self, text: str) -> None:
        """Raises `SessionClosed`."""
        await self._in_thread(self._tell, text)

    async def code(self) -> str:
        """End the session, and return the code of why it ended."""
        result: SandboxResult = await self._in_thread(self._close, self._open)
        return _CODES.get(result.reason, "program_stopped")

    async def end(self) -> None:
        """End the session, also when the caller is cancelled: the thread runs to its end."""
        ending = asyncio.wrap_future(self._threads.submit(self._end))
        self._threads.shutdown(wait=False)
        with anyio.CancelScope(shield=True):
            await asyncio.shield(ending)

    @property
    def is_over(self) -> bool:
        return self._open.is_over

    @property
    def _open(self) -> Session:
        assert self._talk is not None
        return self._talk

    async def _in_thread(self, work: Any, *args: Any) -> Any:
        return await asyncio.get_running_loop().run_in_executor(self._threads, work, *args)

    def _begin(self) -> None:
        talk = open_session(self._spec)
        with self._lock:
            self._talk = talk
            if not self._gone:
                return
        talk.close(0)

    def _tell(self, text: str) -> None:
        with self._telling:
            self._open.send_line(text)

    def _close(self, talk: Session) -> SandboxResult:
        with self._telling:
            return talk.close(_GRACE_SECONDS)

    def _end(self) -> None:
        with self._lock:
            self._gone = True
            talk = self._talk
        if talk is not None:
            self._close(talk)
