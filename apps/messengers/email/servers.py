"""Talk to a company's mail servers: send a message over SMTP; fetch new ones, and wait for them, over IMAP. Blocking:
call in a thread.

A server's name is resolved once, and the address that was checked is called, so that a company cannot have us call an
address inside the operator's network. A mail larger than `MAX_BYTES` is not fetched.
"""

from __future__ import annotations

import contextlib
import imaplib
import re
import smtplib
import socket
import ssl
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from email.message import EmailMessage
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings

from apps.messengers.ports import NotSent
from kernel.http.resolver import RequestRefused, resolve_url

MAX_BYTES, MAX_AT_ONCE = 30_000_000, 50
SECONDS = 15
# How long one wait for news lasts: a connection that died unnoticed is found out by then. How often it is interrupted.
WAIT_SECONDS, STEP_SECONDS = 60.0, 1.0
_IDLE, _LONGEST_LINE, _READ = b"silas-idle", 1_000_000, 65_536
_SIZE = re.compile(rb"RFC822\.SIZE (\d+)")


@dataclass(frozen=True)
class Fetched:
    """`content` is None for a mail that is too large."""

    uid: int
    content: bytes | None


def smtp_send(place: Mapping[str, object], password: str, message: EmailMessage) -> None:
    """Raises `NotSent`."""
    try:
        with _smtp(place) as server:
            if place.get("smtp_user"):
                server.login(str(place["smtp_user"]), password)
            server.send_message(message)
    except smtplib.SMTPRecipientsRefused as refusal:
        codes = [code for code, _ in refusal.recipients.values()]
        raise NotSent(
            "recipient_refused", retry_after=60 if all(400 <= code < 500 for code in codes) else None
        ) from None
    except smtplib.SMTPAuthenticationError:
        raise NotSent("login_refused", retry_after=300) from None
    except smtplib.SMTPResponseException as refusal:
        raise NotSent(f"smtp_{refusal.smtp_code}", retry_after=60 if 400 <= refusal.smtp_code < 500 else None) from None
    except (OSError, smtplib.SMTPException) as error:
        raise NotSent(_word(error), retry_after=30) from None


def smtp_check(place: Mapping[str, object], password: str) -> None:
    """Log in and do nothing. Raises `NotSent`."""
    try:
        with _smtp(place) as server:
            if place.get("smtp_user"):
                server.login(str(place["smtp_user"]), password)
            server.noop()
    except smtplib.SMTPAuthenticationError:
        raise NotSent("smtp_login_refused") from None
    except (OSError, smtplib.SMTPException) as error:
        raise NotSent(f"smtp_{_word(error)}") from None


def imap_check(place: Mapping[str, object], password: str) -> None:
    """Log in and open the folder. Raises `NotSent`."""
    Mailbox(place, password).close()


class Mailbox:
    """A company's folder, open for reading. Nothing is marked, moved or deleted. `can_wait`: the server reports new
    mails (IDLE, RFC 2177). One method runs at a time, each in a thread. All of them raise `NotSent`."""

    def __init__(self, place: Mapping[str, object], password: str) -> None:
        self._lock = threading.Lock()
        self._box = _imap(place, password)
        self._has_news = False
        self.can_wait = "IDLE" in self._box.capabilities
        try:
            self._validity, self._following = _standing(self._box, str(place.get("imap_folder") or "INBOX"))
        except (OSError, imaplib.IMAP4.error, ValueError) as error:
            self.close()
            raise NotSent(f"imap_{_word(error)}", retry_after=60) from None

    def fetch(self, kept: Mapping[str, Any]) -> tuple[list[Fetched], dict[str, object]]:
        """New mails, at most `MAX_AT_ONCE`, and what to keep for the next look. The first look takes only what comes
        after it. `kept`: `validity` and `uid`, the last one seen (RFC 3501, 2.3.1.1)."""
        if kept.get("validity") != self._validity:
            return [], {"validity": self._validity, "uid": self._following - 1}
        with self._lock:
            try:
                self._box.response("EXISTS")
                found = _uids(self._box, int(kept["uid"]) + 1)[:MAX_AT_ONCE]
                fetched = [_fetch(self._box, uid) for uid in found]
                # What the server reported meanwhile, it does not report again while we wait.
                self._has_news = self._box.response("EXISTS")[1] != [None]
            except (OSError, imaplib.IMAP4.error, ValueError, IndexError, TypeError) as error:
                raise NotSent(f"imap_{_word(error)}", retry_after=60) from None
        return fetched, {"validity": self._validity, "uid": max([int(kept["uid"]), *found])}

    def wait(self, stopped: Callable[[], bool]) -> None:
        """Return once a mail came, after `WAIT_SECONDS`, or soon after `stopped` returns True."""
        if self._has_news:
            return
        with self._lock:
            try:
                self._idle(stopped)
            except (OSError, imaplib.IMAP4.error) as error:
                raise NotSent(f"imap_{_word(error)}", retry_after=60) from None

    def close(self) -> None:
        with self._lock:
            with contextlib.suppress(OSError, imaplib.IMAP4.error):
                self._box.logout()
            with contextlib.suppress(OSError):
                self._box.shutdown()

    def _idle(self, stopped: Callable[[], bool]) -> None:
        box, until = self._box, time.monotonic() + WAIT_SECONDS
        box.send(_IDLE + b" IDLE\r\n")
        while not (line := self._line(box)).startswith(b"+"):
            if line.startswith(_IDLE):
                raise imaplib.IMAP4.error("the server takes no IDLE")
        has_news = False
        box.sock.settimeout(STEP_SECONDS)
        while not has_news and time.monotonic() < until and not stopped():
            with contextlib.suppress(TimeoutError):
                has_news = self._line(box).rstrip().endswith(b" EXISTS")
        box.sock.settimeout(SECONDS)
        # Without it the server takes the next command for a part of the wait.
        box.send(b"DONE\r\n")
        while not self._line(box).startswith(_IDLE):
            pass

    @staticmethod
    def _line(box: imaplib.IMAP4) -> bytes:
        line = box.readline()
        if not line or line.startswith(b"* BYE"):
            raise imaplib.IMAP4.abort("the server ended the connection")
        return line


def _standing(box: imaplib.IMAP4, folder: str) -> tuple[str, int]:
    _, data = box.status(_quoted(folder), "(UIDVALIDITY UIDNEXT)")
    said = (data[0] or b"").decode(errors="replace")
    validity, following = re.search(r"UIDVALIDITY (\d+)", said), re.search(r"UIDNEXT (\d+)", said)
    if validity is None or following is None:
        raise ValueError("no UIDVALIDITY or UIDNEXT")
    return validity[1], int(following[1])


def _uids(box: imaplib.IMAP4, first: int) -> list[int]:
    _, data = box.uid("SEARCH", "UID", f"{first}:*")
    # `n:*` always has the last message, also one before n.
    return sorted(uid for uid in map(int, (data[0] or b"").split()) if uid >= first)


def _fetch(box: imaplib.IMAP4, uid: int) -> Fetched:
    _, data = box.uid("FETCH", str(uid), "(RFC822.SIZE)")
    size = _SIZE.search(b" ".join(part for part in data if isinstance(part, bytes)))
    # Asked before it is fetched, so that a huge mail costs no memory.
    if size is None or int(size[1]) > MAX_BYTES:
        return Fetched(uid, None)
    _, data = box.uid("FETCH", str(uid), "(BODY.PEEK[])")
    content = next((part[1] for part in data if isinstance(part, tuple)), None)
    return Fetched(uid, content if isinstance(content, bytes) else None)


def _smtp(place: Mapping[str, Any]) -> smtplib.SMTP:
    host, port = str(place["smtp_host"]), int(place["smtp_port"])
    if place.get("smtp_security") == "tls":
        return _CheckedSMTPS(host, port, timeout=SECONDS, context=_context())
    server = _CheckedSMTP(host, port, timeout=SECONDS)
    if place.get("smtp_security") != "none":
        server.starttls(context=_context())
    return server


def _imap(place: Mapping[str, Any], password: str) -> imaplib.IMAP4:
    """Logged in, with the folder open for reading."""
    host, port = str(place["imap_host"]), int(place["imap_port"])
    try:
        if place.get("imap_security") == "tls":
            box: imaplib.IMAP4 = _CheckedIMAPS(host, port, ssl_context=_context(), timeout=SECONDS)
        else:
            box = _CheckedIMAP(host, port, timeout=SECONDS)
            if place.get("imap_security") != "none":
                box.starttls(ssl_context=_context())
    except (OSError, imaplib.IMAP4.error) as error:
        raise NotSent(f"imap_{_word(error)}", retry_after=60) from None
    try:
        box.login(str(place["imap_user"]), password)
        state, _ = box.select(_quoted(str(place.get("imap_folder") or "INBOX")), readonly=True)
        problem = "" if state == "OK" else "imap_no_folder"
    except imaplib.IMAP4.error:
        problem = "imap_login_refused"
    except OSError as error:
        problem = f"imap_{_word(error)}"
    if problem:
        with contextlib.suppress(OSError, imaplib.IMAP4.error):
            box.logout()
        raise NotSent(problem, retry_after=300)
    return box


def _quoted(folder: str) -> str:
    plain = folder.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{plain}"'


def _context() -> ssl.SSLContext:
    return ssl.create_default_context(cafile=settings.CHANNELS_CA or None)


def _word(error: Exception) -> str:
    if isinstance(error, ssl.SSLError):
        return "tls_failed"
    if isinstance(error, RequestRefused | _Refused):
        return "address_refused"
    return "timeout" if isinstance(error, TimeoutError) else "unreachable"


class _Refused(OSError):
    pass


def _connect(host: str, port: int, timeout: float | None) -> socket.socket:
    """A connection to the address that was checked. Raises `OSError`."""
    shown = f"[{host}]" if ":" in host else host
    try:
        parts = urlsplit(resolve_url(urlsplit(f"tcp://{shown}:{port}"), allow_private=settings.CHANNELS_PRIVATE))
    except (RequestRefused, ValueError) as refusal:
        raise _Refused(str(refusal)) from None
    return socket.create_connection((parts.hostname, port), timeout)


class _CheckedSMTP(smtplib.SMTP):
    def _get_socket(self, host: str, port: int, timeout: float) -> socket.socket:
        return _connect(host, port, timeout)


class _CheckedSMTPS(smtplib.SMTP_SSL):
    def _get_socket(self, host: str, port: int, timeout: float) -> socket.socket:
        # The certificate is still that of the name, though the checked address is called.
        return self.context.wrap_socket(_connect(host, port, timeout), server_hostname=host)


class _CheckedIMAP(imaplib.IMAP4):
    """Reads from its socket without a file in between, which could not be read any more after a time-out."""

    _ahead: tuple[object, bytes] = (None, b"")

    def _create_socket(self, timeout: float | None) -> socket.socket:
        return _connect(self.host, self.port, timeout)

    def read(self, size: int) -> bytes:
        pieces, missing = [self._take(size)], size
        while missing := missing - len(pieces[-1]):
            if not self._receive():
                break
            pieces.append(self._take(missing))
        return b"".join(pieces)

    def readline(self) -> bytes:
        while (end := self._unread().find(b"\n")) < 0 and len(self._unread()) <= _LONGEST_LINE:
            if not self._receive():
                break
        return self._take(end + 1 if end >= 0 else len(self._unread()))

    def _receive(self) -> bool:
        """Read what has come; False at the end of the connection. A time-out loses nothing."""
        piece: bytes = self.sock.recv(_READ)
        self._ahead = (self.sock, self._unread() + piece)
        return bool(piece)

    def _take(self, size: int) -> bytes:
        unread = self._unread()
        self._ahead = (self.sock, unread[size:])
        return unread[:size]

    def _unread(self) -> bytes:
        """What was read ahead from this very socket: what came before STARTTLS was anybody's."""
        source, unread = self._ahead
        return unread if source is self.sock else b""


class _CheckedIMAPS(_CheckedIMAP, imaplib.IMAP4_SSL):
    def _create_socket(self, timeout: float | None) -> socket.socket:
        secured: socket.socket = self.ssl_context.wrap_socket(
            super()._create_socket(timeout), server_hostname=self.host
        )
        return secured
