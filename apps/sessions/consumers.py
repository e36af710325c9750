"""One live socket of one visitor: a presence. Checks who speaks, passes messages in, sends every recorded frame once.

The first frame (or the `bearer.` subprotocol) authenticates within five seconds. Recorded frames leave in `seq`
order: what a live poke skipped is read from the rows, now or by the sweep (`catch_up`). Once authenticated, a bad frame
is answered and the socket stays; a socket that goes on with them is closed, and its conversation has to wait. Codes
are those of the contract, and 1013 where database or Redis are away: come back later.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import math
from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING, Any

from channels.consumer import get_handler_name
from channels.generic.websocket import AsyncWebsocketConsumer
from django.conf import settings
from django.db import Error as DatabaseError
from pydantic import ValidationError

from apps.access import tokens
from apps.sessions import catch_up, presence, registry, rules, runner, services
from apps.sessions.ratelimit import limits, open_sockets
from apps.sessions.schemas import (
    MAX_FRAME_BYTES,
    POLICY_VIOLATION,
    VISITOR_FRAME,
    VISITOR_TYPES,
    Accepted,
    AuthFrame,
    Busy,
    DecisionFrame,
    MessageFrame,
    ReadFrame,
    TypingFrame,
    client_id_of,
)
from apps.widgets import rules as sites
from apps.widgets.queries import open_deployment
from kernel import live
from kernel import presence as sockets
from kernel.error_codes import ErrorCode
from kernel.errors import SilasError
from kernel.language import gettext, gettext_lazy, in_language
from kernel.ratelimit.token_buckets import Penalties, TokenBucket
from kernel.tenancy import COMPANY_CLOSED, in_scope, in_thread

if TYPE_CHECKING:
    from django_stubs_ext import StrOrPromise


_log = logging.getLogger(__name__)

AUTH_SECONDS = 5
NOT_AUTHENTICATED, FORBIDDEN, TOO_LARGE, TRY_LATER = 4001, 4003, 1009, 1013
UNAVAILABLE_RETRY_SECONDS = 2
# Frames that break the protocol: so many are answered, and one more every ten seconds.
BAD_FRAMES, BAD_FRAMES_A_SECOND = 10, 0.1
UNAVAILABLE = gettext_lazy("We can't receive messages right now. Yours will be sent again automatically.")

_penalties = Penalties()


def _close_code(error: Exception) -> int:
    """A closed company opens again, perhaps in another installation: its visitors keep trying."""
    refused = isinstance(error, SilasError) and error.code not in COMPANY_CLOSED
    return FORBIDDEN if refused else TRY_LATER


class VisitorConsumer(AsyncWebsocketConsumer):  # type: ignore[misc]  # Channels has no types
    visitor: tokens.Visitor | None = None
    bounds: limits.Bounds
    last_seq = 0
    epoch = 0
    _auth_timer: asyncio.TimerHandle | None = None
    _group = ""
    _heard_too_early = False
    _form_due = False
    _has_closed = False

    def __init__(self, *args: object, **kwargs: object) -> None:
        super().__init__(*args, **kwargs)
        self._speaking = TokenBucket(settings.VISITOR_BURST, settings.VISITOR_MESSAGES_A_SECOND)
        self._typing = TokenBucket(limits.TYPING_BURST, limits.TYPING_A_SECOND)
        self._reading = TokenBucket(limits.READ_BURST, limits.READS_A_SECOND)
        self._bad = TokenBucket(BAD_FRAMES, BAD_FRAMES_A_SECOND)

    # -- coming and going ------------------------------------------------------------------------------------------

    async def __call__(self, scope: object, receive: object, send: object) -> None:
        """Remove the socket from all registries when it ends, also after an error."""
        live.serve_from(asyncio.get_running_loop())
        sockets.presence_opened()
        try:
            await super().__call__(scope, receive, send)
        finally:
            sockets.presence_closed()
            catch_up.left(self)
            if self._group:
                live.remove_listener(self._group, self._hear)
            if self._auth_timer:
                self._auth_timer.cancel()
            if self.visitor is not None:
                # Shielded: the server cancels this task when it stops, and the seat would stay taken until it expires.
                await asyncio.shield(open_sockets.stand_up(self.channel_name))

    async def connect(self) -> None:
        bearer = next((name for name in self.scope["subprotocols"] if name.startswith("bearer.")), None)
        await self.accept(bearer)
        self.key = self.scope["url_route"]["kwargs"]["key"]
        try:
            deployment = await in_thread(open_deployment, self.key)
        except (SilasError, DatabaseError) as error:
            await self.close(_close_code(error))
            return
        if deployment is None or not _own_origin(self.scope["headers"]):
            await self.close(FORBIDDEN)
        elif bearer:
            await self._authenticate(AuthFrame(type="auth", token=bearer.removeprefix("bearer.")))
        elif self.visitor is None:
            loop = asyncio.get_running_loop()
            # A socket that says nothing would otherwise cost memory for as long as it likes.
            self._auth_timer = loop.call_later(AUTH_SECONDS, lambda: loop.create_task(self._too_late()))

    async def disconnect(self, code: int) -> None:
        if self.visitor:
            await live.leave(rules.group_of(self.visitor.session_id), self.channel_name)

    async def close(self, code: int | None = None, reason: str | None = None) -> None:
        """What was sent before and is still in the queue is not looked at any more."""
        self._has_closed = True
        await super().close(code, reason)

    async def _too_late(self) -> None:
        if self.visitor is None:
            with contextlib.suppress(Exception):
                await self.close(NOT_AUTHENTICATED)

    async def _authenticate(self, frame: AuthFrame) -> None:
        visitor = tokens.read(frame.token)
        if visitor is None or visitor.deployment_key != self.key:
            await self.close(NOT_AUTHENTICATED)
            return
        # A closed socket could connect again at once and go on with bad frames.
        if _penalties.seconds_left(str(visitor.session_id)):
            await self.close(TRY_LATER)
            return
        self._group = rules.group_of(visitor.session_id)
        # Joined before the rows are read: a frame that is sent in between is heard, and read again if it came too
        # early.
        if not await live.join(self._group, self.channel_name, self._hear):
            await self.close(TRY_LATER)
            return
        try:
            arrival = await in_scope(visitor.tenant_id, presence.arrive, visitor, frame.after_seq)
        except (SilasError, DatabaseError) as error:
            await self.close(_close_code(error))
            return
        most = arrival.bounds.sockets
        if not await open_sockets.sit_down(visitor, self.channel_name, group=self._group, most=most):
            wait = open_sockets.RETRY_SECONDS
            await self._error(ErrorCode.TOO_MANY_WINDOWS, open_sockets.CROWDED, retry_after=wait, limit="windows")
            await self.close(TRY_LATER)
            return
        self.bounds = arrival.bounds
        self.visitor, self.epoch, self.last_seq = visitor, arrival.epoch, arrival.after
        self._form_due = arrival.form_due
        catch_up.entered(self)
        await self._send(arrival.ready)
        for missed in arrival.missed:
            await self._deliver(missed)
        if self._heard_too_early:
            await self.catch_up()

    # -- from the visitor ------------------------------------------------------------------------------------------

    async def receive(self, text_data: str | None = None, bytes_data: bytes | None = None) -> None:
        if self._has_closed:
            return
        # Measured before it is parsed, so that a large frame costs no more than its transfer.
        if len((text_data or "").encode()) + len(bytes_data or b"") > MAX_FRAME_BYTES:
            await self.close(TOO_LARGE)
            return
        frame: object = None
        try:
            frame = _parse(text_data or "")
        except SilasError as error:
            await self._refuse(error)
            return
        try:
            await self._handle(frame)
        except SilasError as error:
            await self._error(error.code, error.args[0], **(_named(frame) | error.extra))
        except DatabaseError:
            _log.warning("visitor_frame_failed", exc_info=True)
            await self._error(
                ErrorCode.UNAVAILABLE, UNAVAILABLE, retry_after=UNAVAILABLE_RETRY_SECONDS, **_named(frame)
            )

    async def _refuse(self, error: SilasError) -> None:
        """Only an authenticated visitor is told what is wrong with a frame, and only so often."""
        if self.visitor is None:
            await self.close(NOT_AUTHENTICATED)
        # A client that goes on with broken frames would otherwise be answered for ever.
        elif self._bad.wait():
            _penalties.punish(str(self.visitor.session_id))
            await self.close(POLICY_VIOLATION)
        else:
            await self._error(error.code, error.args[0], **error.extra)

    async def _handle(self, frame: object) -> None:
        if isinstance(frame, AuthFrame):
            if self.visitor is None:
                await self._authenticate(frame)
        elif self.visitor is None:
            await self.close(NOT_AUTHENTICATED)
        elif isinstance(frame, MessageFrame):
            self._keep_pace()
            await self._require_form(self.visitor)
            await limits.count_message(self.visitor, self.bounds, address=self._address)
            await self._message(frame, self.visitor)
        elif isinstance(frame, DecisionFrame):
            self._keep_pace()
            await limits.count_message(self.visitor, self.bounds, address=self._address)
            await self._decide(frame, self.visitor)
        elif isinstance(frame, TypingFrame) and not self._typing.wait():
            event = {"type": "console.typing", "session": str(self.visitor.session_id), "sender": "visitor"}
            await live.send(rules.watchers_of(self.visitor.tenant_id, self.visitor.session_id), event)
        elif isinstance(frame, ReadFrame) and frame.seq <= self.last_seq and not self._reading.wait():
            await self._mark_read(frame, self.visitor)

    def _keep_pace(self) -> None:
        """Raises `SilasError("rate_limited")`; nothing is stored, and the client sends it again."""
        if seconds := self._speaking.wait():
            extra = {"retry_after": math.ceil(seconds), "limit": "presence"}
            raise SilasError(ErrorCode.RATE_LIMITED, limits.TOO_FAST, extra=extra)

    async def _require_form(self, visitor: tokens.Visitor) -> None:
        """Raises `SilasError("form_required")` where something has to be answered before the first word."""
        if self._form_due:
            self._form_due = await in_scope(visitor.tenant_id, presence.form_is_due, visitor.session_id)
        if self._form_due:
            raise SilasError(ErrorCode.FORM_REQUIRED)

    @property
    def _address(self) -> str:
        """The client address that the server or its proxy states; empty if there is none."""
        client = self.scope.get("client")
        return str(client[0]) if client else ""

    async def _message(self, frame: MessageFrame, visitor: tokens.Visitor) -> None:
        accepted = await self._stored(frame, visitor)
        if isinstance(accepted, Busy):
            await self._error(ErrorCode.BUSY_RETRY, accepted.said, retry_after=accepted.retry_after, **_named(frame))
            return
        await self._send({"type": "ack", "client_id": frame.client_id, "seq": accepted.seq})
        if not accepted.repeated:
            runner.wake(visitor.tenant_id, visitor.session_id)

    async def _decide(self, frame: DecisionFrame, visitor: tokens.Visitor) -> None:
        """What was chosen comes back as a recorded frame, to everybody present."""
        answer = partial(registry.handle_decision, visitor, frame)
        if not (await in_scope(visitor.tenant_id, answer)).repeated:
            runner.wake(visitor.tenant_id, visitor.session_id)

    async def _mark_read(self, frame: ReadFrame, visitor: tokens.Visitor) -> None:
        """Staff who have the conversation open see it at once."""
        if await in_scope(visitor.tenant_id, presence.mark_read, visitor.session_id, frame.seq):
            event = {"type": "console.changed", "what": f"session:{visitor.session_id}"}
            await live.send(rules.watchers_of(visitor.tenant_id, visitor.session_id), event)

    async def _stored(self, frame: MessageFrame, visitor: tokens.Visitor) -> Accepted | Busy:
        what: dict[str, Any] = {
            "text": frame.text,
            "client_id": frame.client_id,
            "bounds": self.bounds,
            "proactive_message": frame.proactive_message,
        }
        if frame.signed is None:
            return await in_scope(visitor.tenant_id, partial(services.accept_message, visitor.session_id), **what)
        where = visitor.deployment_key
        signed = partial(services.accept_signed, visitor.session_id, signed=frame.signed, deployment=where)
        return await in_scope(visitor.tenant_id, signed, **what)

    # -- to the visitor --------------------------------------------------------------------------------------------

    async def dispatch(self, message: dict[str, object]) -> None:
        """What this process sent came by `_hear` already, without the way over Redis. Channels would look for unused
        database connections in a thread before each message; ours go back to their pool with each step.
        """
        for event in live.unpack_events(message, attending=True):
            handle = getattr(self, get_handler_name(event), None)
            if handle is None:
                raise ValueError(f"no handler for {event['type']}")
            await handle(event)

    async def _hear(self, event: dict[str, object]) -> None:
        if self.visitor is None:
            self._heard_too_early = True
        else:
            await self.dispatch(event)

    async def chat_frame(self, event: dict[str, Any]) -> None:
        frame = event["frame"]
        if frame["seq"] > self.last_seq + 1:
            await self.catch_up()
        await self._deliver(frame)
        if self.visitor is not None and frame["type"] == "decision" and frame["sender"] == "visitor":
            # A form comes in over HTTP, where no turns run.
            runner.wake(self.visitor.tenant_id, self.visitor.session_id)

    async def catch_up(self) -> None:
        """Send what the rows hold beyond what was sent. Safe beside itself: each frame leaves once, in its turn."""
        if self.visitor is None:
            return
        try:
            missed = await in_scope(self.visitor.tenant_id, presence.missed, self.visitor.session_id, self.last_seq)
        except DatabaseError:
            _log.warning("presence_not_caught_up session=%s", self.visitor.session_id)
            return
        for frame in missed:
            await self._deliver(frame)

    async def chat_delta(self, event: dict[str, Any]) -> None:
        # A piece of a turn that began before a person took over is not shown (contract: from that commit on, nothing).
        if self.visitor is not None and event["epoch"] >= self.epoch:
            await self._send({"type": "delta", "turn": event["turn"], "text": event["text"]})

    async def chat_typing(self, event: dict[str, object]) -> None:
        if self.visitor is not None:
            await self._send({"type": "typing", "sender": event["sender"]})

    async def chat_read(self, event: dict[str, object]) -> None:
        if self.visitor is not None:
            await self._send({"type": "read", "up_to": event["up_to"]})

    async def _deliver(self, frame: dict[str, Any]) -> None:
        # The same frame comes from this process, over Redis and from the rows; only its first arrival in turn is sent.
        if self.visitor is None or frame["seq"] != self.last_seq + 1:
            return
        self.last_seq = frame["seq"]
        if frame["type"] == "owner":
            self.epoch = frame["epoch"]
        await self._send(frame)

    async def _error(self, code: ErrorCode, message: StrOrPromise, **extra: object) -> None:
        with in_language(*_browser_languages(self.scope["headers"])):
            text = str(message)
        await self._send({"type": "error", "code": code, "message": text, **extra})

    async def _send(self, frame: dict[str, object]) -> None:
        await self.send(text_data=json.dumps(frame))


def _browser_languages(headers: Iterable[tuple[bytes, bytes]]) -> list[str]:
    """The languages that the browser asks for, the preferred one first."""
    accepted = next((value for name, value in headers if name == b"accept-language"), b"").decode("latin-1")
    return [tag.partition(";")[0].strip() for tag in accepted.split(",")]


def _parse(text: str) -> object:
    try:
        raw = json.loads(text)
    # Deeply nested JSON exhausts the parser's stack.
    except (ValueError, RecursionError):
        raise SilasError(ErrorCode.NOT_JSON) from None
    kind = raw.get("type") if isinstance(raw, dict) else None
    if not isinstance(kind, str) or kind not in VISITOR_TYPES:
        raise SilasError(ErrorCode.UNKNOWN_TYPE)
    try:
        return VISITOR_FRAME.validate_python(raw)
    except ValidationError as error:
        # The input is left out: it would come back to the sender in the error, and into what logs it.
        first = error.errors(include_input=False, include_url=False, include_context=False)[0]
        field = str(first["loc"][-1]) if first["loc"] else "frame"
        extra = {"field": field, **client_id_of(raw)}
        raise SilasError(
            ErrorCode.INVALID_FRAME,
            gettext("Field {field}: {first}.").format(field=field, first=first["msg"]),
            extra=extra,
        ) from None


def _named(frame: object) -> dict[str, str]:
    """Whose message or card an error is about, in the client's own words."""
    if isinstance(frame, DecisionFrame):
        return {"request_id": str(frame.request_id)}
    return {"client_id": frame.client_id} if isinstance(frame, MessageFrame) else {}


def _own_origin(headers: list[tuple[bytes, bytes]]) -> bool:
    """The widget's frame is served by us, so a browser's socket comes from our own origin; other clients send none."""
    known = {name: value.decode("latin-1") for name, value in headers}
    return sites.origin_allowed(known.get(b"origin"), host=known.get(b"host", ""), listed=())
