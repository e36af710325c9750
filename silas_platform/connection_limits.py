"""Limits on connections below the application: frame rate, buffered frames, request heads, connections per address.

Daphne queues frames for the application without a bound, answers every ping and waits for a request's head as long as
bytes trickle in. Here each socket has a rate limit for frames of any kind and a bound of what waits for the
application. Above the rate it is closed with 4008 and no longer read, and its address must wait before it opens another
socket; so must an address whose sockets repeatedly end before the application answered, because they never
authenticated. None of this parses a frame, queries the database, answers or logs. Our own close codes are sent as
requested (contract interfaces, close codes), some of which Daphne's library refuses. Installed by `asgi`.
"""

from __future__ import annotations

import resource
from collections import Counter
from functools import cache
from typing import Any

from daphne.http_protocol import HTTPFactory
from daphne.ws_protocol import WebSocketFactory, WebSocketProtocol
from django.conf import settings
from twisted.web import http

from apps.sessions.schemas import MAX_FRAME_BYTES, POLICY_VIOLATION
from kernel.ratelimit.addresses import address_key, is_own_machine
from kernel.ratelimit.token_buckets import Penalties, TokenBucket, TokenBuckets
from silas_platform.client_address import client_address

HEAD_SECONDS, REFUSAL_SECONDS, UNREAD_SECONDS, RECHECK_SECONDS = 15.0, 2.0, 30.0, 0.05
MAX_WAITING, MAX_UNANSWERED = 50, 20
TRY_LATER = 1013
SPARE_FILES, MAX_FILES = 200, 65_536

_REFUSAL = b"HTTP/1.1 429 Too Many Requests\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"

penalties = Penalties()
_http: Any = http  # Twisted's types know neither its transports nor its timers


class LimitedWebSocket(WebSocketProtocol):  # type: ignore[misc]  # Daphne has no types
    """A WebSocket as Daphne serves it. Method names are Autobahn's, Daphne's and Twisted's."""

    failByDrop = False
    maxFramePayloadSize = maxMessagePayloadSize = MAX_FRAME_BYTES
    is_cut_off = False
    address = ""
    _was_answered = False
    _frames_received = 0
    _unread: Any = None

    def __init__(self) -> None:
        super().__init__()
        self._frames = TokenBucket(settings.SOCKET_FRAMES, settings.SOCKET_FRAMES / 10)

    # -- opening and closing ------------------------------------------------------------------------------------------

    def onConnect(self, request: Any) -> Any:
        self.address = _address(self.transport, request.headers.get("x-forwarded-for", "").encode())
        return super().onConnect(request)

    def onOpen(self) -> None:
        """Register for back-pressure instead of the HTTP channel that this socket was upgraded from."""
        self.transport.unregisterProducer()
        self.transport.registerProducer(self, True)
        super().onOpen()

    def connectionLost(self, reason: object) -> None:
        _unregister(self.transport)
        self.resumeProducing()
        # A socket that ended before any answer never authenticated: many of them are a flood.
        if not (self._was_answered or self.is_cut_off or is_own_machine(self.address)):
            name = address_key(self.address)
            if not _unanswered().take(name):
                penalties.punish(name)
        super().connectionLost(reason)

    def serverSend(self, content: object, binary: bool = False) -> None:
        self._was_answered = True
        super().serverSend(content, binary)

    def serverClose(self, code: int | None = None) -> None:
        if code == POLICY_VIOLATION:
            self.close_for_flooding()
        else:
            self._was_answered = self._was_answered or code == TRY_LATER
            self.sendCloseFrame(code=1000 if code is None else code)

    def handle_exception(self, exception: BaseException) -> None:
        """Do not count an error of ours against the client's address."""
        self._was_answered = True
        super().handle_exception(exception)

    def close_for_flooding(self) -> None:
        """Close with 4008, stop reading, drop frames that the application has not received, and penalise the address.

        Autobahn drops the connection when it has not closed within a second.
        """
        if not self.is_cut_off:
            self.is_cut_off, self.data = True, b""
            while not self.application_queue.empty():
                self.application_queue.get_nowait()
            self.transport.pauseProducing()
            self.sendCloseFrame(code=POLICY_VIOLATION)
            if not is_own_machine(self.address):  # otherwise everyone behind a proxy without the header
                penalties.punish(address_key(self.address))

    # -- receiving ------------------------------------------------------------------------------------------------

    def _dataReceived(self, data: bytes) -> None:
        if not self.is_cut_off:
            try:
                super()._dataReceived(data)
            except _TooManyFrames:
                self.close_for_flooding()

    def onFrameBegin(self) -> None:
        """Count every frame, also fragments, pings and pongs. Few are allowed before the application's first answer,
        which authenticates."""
        self._frames_received += 1
        if self._frames.wait() or (self._frames_received > MAX_UNANSWERED and not self._was_answered):
            raise _TooManyFrames
        super().onFrameBegin()

    def onMessage(self, payload: bytes, isBinary: bool) -> None:
        super().onMessage(payload, isBinary)
        if self.application_queue.qsize() > MAX_WAITING:
            self.transport.pauseProducing()
            self._resume_when_drained()

    def _resume_when_drained(self) -> None:
        """Read again once the application has caught up; meanwhile the client's bytes wait in the network."""
        if self.state == self.STATE_OPEN and self.application_queue.qsize() > MAX_WAITING // 2:
            self.factory.reactor.callLater(RECHECK_SECONDS, self._resume_when_drained)
        elif self.state == self.STATE_OPEN and not self.is_cut_off:
            self.transport.resumeProducing()

    # -- sending: Twisted's callbacks for a full and a drained buffer ----------------------------------------------

    def pauseProducing(self) -> None:
        if self._unread is None:
            self._unread = self.factory.reactor.callLater(UNREAD_SECONDS, self.transport.abortConnection)

    def resumeProducing(self) -> None:
        if self._unread is not None and self._unread.active():
            self._unread.cancel()
        self._unread = None

    def stopProducing(self) -> None:
        self.resumeProducing()


class LimitedHTTPChannel(_http.HTTPChannel):  # type: ignore[misc]  # Twisted's class has no types
    """A connection before its request is complete.

    The head must arrive within `HEAD_SECONDS`. A WebSocket whose address floods or reconnects too fast is refused here,
    before anything is allocated for it.
    """

    _head: Any = None
    _unread: Any = None
    _is_refused = False

    def connectionMade(self) -> None:
        super().connectionMade()
        if not _register(self.transport):
            self.transport.abortConnection()
        else:
            self._start_head_timer()

    def dataReceived(self, data: bytes) -> None:
        if self._head is None and not self.requests:
            self._start_head_timer()
        super().dataReceived(data)

    def allHeadersReceived(self) -> None:
        self._cancel_head_timer()
        headers = self.requests[-1].requestHeaders
        if headers.hasHeader(b"upgrade"):
            name = address_key(_address(self.transport, *headers.getRawHeaders(b"x-forwarded-for", ())))
            self._is_refused = bool(penalties.seconds_left(name)) or not _handshakes().take(name)
        if self._is_refused:
            self._refuse()
        else:
            super().allHeadersReceived()

    def rawDataReceived(self, data: bytes) -> None:
        if not self._is_refused:
            super().rawDataReceived(data)

    def _refuse(self) -> None:
        """Refuse after a delay, so that immediate reconnects cost little; nothing more is read meanwhile."""
        self.length = None  # no body is expected
        self.transport.pauseProducing()
        self._head = self.callLater(REFUSAL_SECONDS, self._send_refusal)

    def _send_refusal(self) -> None:
        self._head = None
        self.transport.write(_REFUSAL)
        self.transport.loseConnection()

    def pauseProducing(self) -> None:
        """Twisted's callback for a full buffer: a reader that takes nothing of an answer for so long is dropped."""
        super().pauseProducing()
        if self._unread is None:
            self._unread = self.callLater(UNREAD_SECONDS, self.transport.abortConnection)

    def resumeProducing(self) -> None:
        self._cancel_unread_timer()
        super().resumeProducing()

    def _cancel_unread_timer(self) -> None:
        if self._unread is not None and self._unread.active():
            self._unread.cancel()
        self._unread = None

    def connectionLost(self, reason: object) -> None:
        self._cancel_head_timer()
        self._cancel_unread_timer()
        _unregister(self.transport)
        super().connectionLost(reason)

    def _start_head_timer(self) -> None:
        self._head = self.callLater(HEAD_SECONDS, self.transport.abortConnection)

    def _cancel_head_timer(self) -> None:
        if self._head is not None and self._head.active():
            self._head.cancel()
        self._head = None


def _address(transport: Any, *forwarded: bytes) -> str:
    """Address of the client as the outermost trusted proxy saw it, else of the connection."""
    address = client_address(forwarded, trusted=settings.TRUSTED_PROXIES) if settings.TRUSTED_PROXIES else ""
    return address or str(getattr(transport.getPeer(), "host", ""))


class _TooManyFrames(Exception):
    pass


@cache
def _handshakes() -> TokenBuckets:
    return TokenBuckets(settings.SOCKET_HANDSHAKES, settings.SOCKET_HANDSHAKES / 10)


@cache
def _unanswered() -> TokenBuckets:
    """Budget of sockets for each address that may end before the application answered."""
    return TokenBuckets(settings.SOCKET_HANDSHAKES / 20, settings.SOCKET_HANDSHAKES / 1000)


# Open connections by peer address; behind a proxy that is the proxy's.
_open: dict[Any, str] = {}
_by_peer: Counter[str] = Counter()


def _register(transport: Any) -> bool:
    """Count the connection; False when there is no room for it, in total or from this peer."""
    peer = str(getattr(transport.getPeer(), "host", ""))
    # Behind a proxy all clients share one peer, so that only the total is limited.
    is_shared_peer = bool(settings.TRUSTED_PROXIES) or is_own_machine(peer)
    if len(_open) >= _max_connections() or not (is_shared_peer or _by_peer[peer] < settings.ADDRESS_CONNECTIONS):
        return False
    _open[transport] = peer
    _by_peer[peer] += 1
    return True


def _unregister(transport: object) -> None:
    peer = _open.pop(transport, None)
    if peer is not None:
        _by_peer[peer] -= 1
        if not _by_peer[peer]:
            del _by_peer[peer]


@cache
def _max_connections() -> int:
    """Limit of open files of this process, minus those that it needs itself. Raises the soft limit first."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    soft = MAX_FILES if hard == resource.RLIM_INFINITY else min(hard, MAX_FILES)
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    return max(soft - SPARE_FILES, SPARE_FILES)


def install() -> None:
    WebSocketFactory.protocol = LimitedWebSocket
    HTTPFactory.protocol = staticmethod(lambda: _http._GenericHTTPChannelProtocol(LimitedHTTPChannel()))
