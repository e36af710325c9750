"""Talk to a company's mail servers: send a message over SMTP, and fetch new ones over IMAP. Blocking; call in a thread.

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
from collections.abc import Mapping
from dataclasses import dataclass
from email.message import EmailMessage
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings

from apps.messengers.ports import NotSent
from kernel.http.resolver import RequestRefused, resolve_url

MAX_BYTES, MAX_AT_ONCE = 30_000_000, 50
SECONDS = 15
_SIZE = re.compile(rb"RFC822\.SIZE (\d+)")
_UID = re.compile(rb"UID (\d+)")


@dataclass(frozen=True)
class Fetched:
    """`content` is None for a mail that is too large."""

    uid: int
    content: bytes | None


def smtp_send(place: Mapping[str, Any], password: str, message: EmailMessage) -> None:
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


def smtp_check(place: Mapping[str, Any], password: str) -> None:
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


def imap_check(place: Mapping[str, Any], password: str) -> None:
    """Log in and open the folder. Raises `NotSent`."""
    box = _imap(place, password)
    box.logout()


def imap_fetch(place: Mapping[str, Any], password: str, kept: dict[str, Any]) -> tuple[list[Fetched], dict[str, Any]]:
    """New mails of the folder, and what to keep for the next look. The first look takes only what comes after it.

    `kept`: `validity` and `uid`, the last one seen (RFC 3501, 2.3.1.1). Nothing is marked, moved or deleted. Raises
    `NotSent`.
    """
    box = _imap(place, password)
    try:
        validity, following = _standing(box, str(place.get("imap_folder") or "INBOX"))
        if kept.get("validity") != validity:
            return [], {"validity": validity, "uid": following - 1}
        found = _uids(box, int(kept["uid"]) + 1)[:MAX_AT_ONCE]
        fetched = [_fetch(box, uid) for uid in found]
        return fetched, {"validity": validity, "uid": max([int(kept["uid"]), *found])}
    except (OSError, imaplib.IMAP4.error, ValueError, IndexError, TypeError) as error:
        raise NotSent(f"imap_{_word(error)}", retry_after=60) from None
    finally:
        with contextlib.suppress(OSError, imaplib.IMAP4.error):
            box.logout()


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
        return self.context.wrap_socket(_connect(host, port, timeout), server_hostname=host)


class _CheckedIMAP(imaplib.IMAP4):
    def _create_socket(self, timeout: float | None) -> socket.socket:
        return _connect(self.host, self.port, timeout)


class _CheckedIMAPS(imaplib.IMAP4_SSL):
    def _create_socket(self, timeout: float | None) -> socket.socket:
        connected = _connect(self.host, self.port, timeout)
        secured: socket.socket = self.ssl_context.wrap_socket(connected, server_hostname=self.host)
        return secured
