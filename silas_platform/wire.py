"""How connections are served below the application: what a client may send, how fast, and with which code it is closed.

Daphne queues every frame for the application without a bound, answers every ping and waits for a request's head as long
as bytes trickle in. Here each socket has a pace for frames of any kind and a bound of what waits for the application;
beyond the pace it is closed with 4008 and no longer read, and its address has to wait before it may open another. So
has an address whose sockets end again and again before the application said anything: nobody authenticated in them.
None of it parses a frame, asks the database, answers or logs. Our own close codes are sent as asked for (contract
interfaces, close codes), which Daphne's library refuses for some. Installed by `asgi`.
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

from apps.sessions.ratelimit.message_pace import Pace
from apps.sessions.ratelimit.new_conversations import is_ours, name_of
from apps.sessions.schemas import MAX_FRAME_BYTES, POLICY_VIOLATION
from kernel.ratelimit.token_buckets import Penalties, TokenBuckets
from silas_platform.proxies import client_of

HEAD_SECONDS, REFUSAL_SECONDS, UNREAD_SECONDS, LOOK_AGAIN_SECONDS = 15.0, 2.0, 30.0, 0.05
MOST_WAITING, MOST_UNANSWERED = 50, 20
TRY_LATER = 1013
SPARE_FILES, MOST_FILES = 200, 65_536

_REFUSAL = b"HTTP/1.1 429 Too Many Requests\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"

penalties = Penalties()
_http: Any = http  # Twisted's types know neither its transports nor its timers


class Line(WebSocketProtocol):  # type: ignore[misc]  # Daphne has no types
    """One socket as Daphne serves it; the names are Autobahn's, Daphne's and Twisted's."""

    failByDrop = False
    maxFramePayloadSize = maxMessagePayloadSize = MAX_FRAME_BYTES
    is_cut_off = False
    address = ""
    _was_answered = False
    _heard = 0
    _unread: Any = None

    def __init__(self) -> None:
        super().__init__()
        self._frames = Pace(settings.SOCKET_FRAMES, settings.SOCKET_FRAMES / 10)

    # -- coming and going ------------------------------------------------------------------------------------------

    def onConnect(self, request: Any) -> Any:
        self.address = _address(self.transport, request.headers.get("x-forwarded-for", "").encode())
        return super().onConnect(request)

    def onOpen(self) -> None:
        """From now on it is said here, not to the channel of the request that became this socket, when the client does
        not read what is sent."""
        self.transport.unregisterProducer()
        self.transport.registerProducer(self, True)
        super().onOpen()

    def connectionLost(self, reason: Any) -> None:
        _left(self.transport)
        self.resumeProducing()
        if not (self._was_answered or self.is_cut_off or is_ours(self.address)):
            name = name_of(self.address)
            if not _unanswered().take(name):
                penalties.punish(name)
        super().connectionLost(reason)

    def serverSend(self, content: Any, binary: bool = False) -> None:
        self._was_answered = True
        super().serverSend(content, binary)

    def serverClose(self, code: int | None = None) -> None:
        if code == POLICY_VIOLATION:
            self.cut_off()
        else:
            self._was_answered = self._was_answered or code == TRY_LATER
            self.sendCloseFrame(code=1000 if code is None else code)

    def handle_exception(self, exception: BaseException) -> None:
        """A fault of ours counts against nobody."""
        self._was_answered = True
        super().handle_exception(exception)

    def cut_off(self) -> None:
        """Say why, read nothing more, forget what the application has not heard yet, and let the address wait; Autobahn
        drops what has not gone within a second."""
        if not self.is_cut_off:
            self.is_cut_off, self.data = True, b""
            while not self.application_queue.empty():
                self.application_queue.get_nowait()
            self.transport.pauseProducing()
            self.sendCloseFrame(code=POLICY_VIOLATION)
            if not is_ours(self.address):  # else everybody behind a proxy that does not say who asks
                penalties.punish(name_of(self.address))

    # -- what is sent to us ----------------------------------------------------------------------------------------

    def _dataReceived(self, data: bytes) -> None:
        if not self.is_cut_off:
            try:
                super()._dataReceived(data)
            except _TooFast:
                self.cut_off()

    def onFrameBegin(self) -> None:
        """Every frame of every kind: pieces of messages, pings and pongs too. Before the application's first answer,
        which authenticates, there is little to say."""
        self._heard += 1
        if self._frames.wait() or (self._heard > MOST_UNANSWERED and not self._was_answered):
            raise _TooFast
        super().onFrameBegin()

    def onMessage(self, payload: bytes, isBinary: bool) -> None:
        super().onMessage(payload, isBinary)
        if self.application_queue.qsize() > MOST_WAITING:
            self.transport.pauseProducing()
            self._read_on()

    def _read_on(self) -> None:
        """Once the application has come so far; meanwhile the client's bytes wait in the network."""
        if self.state == self.STATE_OPEN and self.application_queue.qsize() > MOST_WAITING // 2:
            self.factory.reactor.callLater(LOOK_AGAIN_SECONDS, self._read_on)
        elif self.state == self.STATE_OPEN and not self.is_cut_off:
            self.transport.resumeProducing()

    # -- what we send: Twisted's words for a full buffer, and one that was read ------------------------------------

    def pauseProducing(self) -> None:
        if self._unread is None:
            self._unread = self.factory.reactor.callLater(UNREAD_SECONDS, self.transport.abortConnection)

    def resumeProducing(self) -> None:
        if self._unread is not None and self._unread.active():
            self._unread.cancel()
        self._unread = None

    def stopProducing(self) -> None:
        self.resumeProducing()


class Channel(_http.HTTPChannel):  # type: ignore[misc]
    """One connection before its request is whole. The head has to come within `HEAD_SECONDS`, however it trickles. A
    socket whose address floods or reconnects too fast is refused here, before there is anything for it."""

    _head: Any = None
    _is_refused = False

    def connectionMade(self) -> None:
        super().connectionMade()
        if not _came(self.transport):
            self.transport.abortConnection()
        else:
            self._wait_for_head()

    def dataReceived(self, data: bytes) -> None:
        if self._head is None and not self.requests:
            self._wait_for_head()
        super().dataReceived(data)

    def allHeadersReceived(self) -> None:
        self._forget_head()
        headers = self.requests[-1].requestHeaders
        if headers.hasHeader(b"upgrade"):
            name = name_of(_address(self.transport, *headers.getRawHeaders(b"x-forwarded-for", ())))
            self._is_refused = bool(penalties.seconds_left(name)) or not _handshakes().take(name)
        if self._is_refused:
            self._refuse()
        else:
            super().allHeadersReceived()

    def rawDataReceived(self, data: bytes) -> None:
        if not self._is_refused:
            super().rawDataReceived(data)

    def _refuse(self) -> None:
        """Late, so that who comes back at once costs little; nothing more is read meanwhile."""
        self.length = None  # of a body that nobody waits for
        self.transport.pauseProducing()
        self._head = self.callLater(REFUSAL_SECONDS, self._say_no)

    def _say_no(self) -> None:
        self._head = None
        self.transport.write(_REFUSAL)
        self.transport.loseConnection()

    def connectionLost(self, reason: Any) -> None:
        self._forget_head()
        _left(self.transport)
        super().connectionLost(reason)

    def _wait_for_head(self) -> None:
        self._head = self.callLater(HEAD_SECONDS, self.transport.abortConnection)

    def _forget_head(self) -> None:
        if self._head is not None and self._head.active():
            self._head.cancel()
        self._head = None


def _address(transport: Any, *forwarded: bytes) -> str:
    """Of the client, as the outermost trusted proxy saw it; else of whoever is connected."""
    said = client_of(forwarded, trusted=settings.TRUSTED_PROXIES) if settings.TRUSTED_PROXIES else ""
    return said or str(getattr(transport.getPeer(), "host", ""))


class _TooFast(Exception):
    pass


@cache
def _handshakes() -> TokenBuckets:
    return TokenBuckets(settings.SOCKET_HANDSHAKES, settings.SOCKET_HANDSHAKES / 10)


@cache
def _unanswered() -> TokenBuckets:
    """Of the sockets that an address opens, so many may end before the application said anything."""
    return TokenBuckets(settings.SOCKET_HANDSHAKES / 20, settings.SOCKET_HANDSHAKES / 1000)


# Open connections, by whom the network says they are from; of one behind a proxy that is the proxy.
_open: dict[Any, str] = {}
_by_peer: Counter[str] = Counter()


def _came(transport: Any) -> bool:
    """Whether there is room for one more connection, in all and from this peer, which counts it."""
    peer = str(getattr(transport.getPeer(), "host", ""))
    is_one_of_many = bool(settings.TRUSTED_PROXIES) or is_ours(peer)
    if len(_open) >= _most_connections() or not (is_one_of_many or _by_peer[peer] < settings.ADDRESS_CONNECTIONS):
        return False
    _open[transport] = peer
    _by_peer[peer] += 1
    return True


def _left(transport: Any) -> None:
    peer = _open.pop(transport, None)
    if peer is not None:
        _by_peer[peer] -= 1
        if not _by_peer[peer]:
            del _by_peer[peer]


@cache
def _most_connections() -> int:
    """As many as this process may open files, but for those that it needs itself."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    soft = MOST_FILES if hard == resource.RLIM_INFINITY else min(hard, MOST_FILES)
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    return max(soft - SPARE_FILES, SPARE_FILES)


def install() -> None:
    WebSocketFactory.protocol = Line
    HTTPFactory.protocol = staticmethod(lambda: _http._GenericHTTPChannelProtocol(Channel()))
