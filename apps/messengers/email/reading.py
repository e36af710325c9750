"""Read a mail: who wrote what in which thread, without quoted text and signature, and what its server says of it.

Runs in the sandbox, without Django, network and keys. What it returns may be anything an attacker wrote: the caller
validates it (`schemas.Mail`). RFC 5322, 2045 to 2047; RFC 3834 for automatic answers, RFC 3464 for reports of delivery,
RFC 8601 for authentication results.
"""

from __future__ import annotations

import email
import email.policy
import email.utils
import hashlib
import re
from email.message import EmailMessage
from typing import Any

import nh3
from mailparser_reply.parser import EmailMessage as Replies

from apps.knowledge.parsing.html import parse_html, require_shallow
from apps.knowledge.parsing.schemas import Unreadable

MAX_FILES, MAX_TEXT, MAX_PARTS, MAX_REFERENCES = 10, 20_000, 200, 30
LANGUAGES = ["en", "de", "es", "fr", "nl"]
_ID = re.compile(r"<([^<>\s]{1,250})>")
_RESULT = re.compile(r"\s*(spf|dkim|dmarc)\s*=\s*([a-z]{1,12})(?![\w=@.-])")
_COMMENT = re.compile(r"\([^()]{0,500}\)|\"[^\"]{0,500}\"")
# Lines that introduce what is quoted, where the library leaves them.
_ATTRIBUTION = re.compile(r"(On|Am|El|Le|Op) .{3,300}(wrote|schrieb|escribió|a écrit|schreef)[^:]{0,100}:")
_UNREAD = {"blockquote", "style", "script", "title"}
_BULK = {"bulk", "list", "junk", "auto_reply"}


def read(data: bytes) -> tuple[dict[str, Any], bytes]:
    """What the mail says, and the bytes of its files one after the other."""
    mail = email.message_from_bytes(data, policy=email.policy.default)
    assert isinstance(mail, EmailMessage)
    names, addresses = _addresses(mail, "From")
    text, files = _parts(mail)
    answer: dict[str, Any] = {
        "message_id": _first_id(mail, "Message-ID") or f"sha256:{hashlib.sha256(data).hexdigest()}",
        # Several senders are ambiguous: it is unknown which one is meant, and programs choose different ones.
        "sender": addresses[0] if len(addresses) == 1 else "",
        "name": names[0] if names else "",
        "recipients": [
            each for name in ("To", "Cc", "Delivered-To", "X-Original-To") for each in _addresses(mail, name)[1]
        ][:50],
        "references": [*_ids(mail, "In-Reply-To"), *reversed(_ids(mail, "References"))][:MAX_REFERENCES],
        "subject": " ".join(_header(mail, "Subject").split())[:200],
        "text": _own_words(text),
        "automatic": _is_automatic(mail),
        "failed": _failed(mail),
        "results": _results(mail),
        "loop": _header(mail, "X-Silas-Channel")[:40],
        "files": [],
    }
    blob = b""
    for name, content in files[:MAX_FILES]:
        answer["files"].append({"name": name[:200], "size": len(content)})
        blob += content
    return answer, blob


def _header(mail: EmailMessage, name: str) -> str:
    try:
        return str(mail.get(name, ""))
    except Exception:  # noqa: BLE001 (the standard parser raises many things for headers that are none)
        return ""


def _headers(mail: EmailMessage, name: str) -> list[str]:
    try:
        return [str(value) for value in mail.get_all(name, [])]
    except Exception:  # noqa: BLE001 (the same)
        return []


def _addresses(mail: EmailMessage, name: str) -> tuple[list[str], list[str]]:
    pairs = email.utils.getaddresses(_headers(mail, name)[:50])
    return [pair[0][:200] for pair in pairs], [pair[1].strip().lower()[:254] for pair in pairs if "@" in pair[1]]


def _ids(mail: EmailMessage, name: str) -> list[str]:
    return _ID.findall(_header(mail, name)[:20_000])


def _first_id(mail: EmailMessage, name: str) -> str:
    return next(iter(_ids(mail, name)), "")


def _parts(mail: EmailMessage) -> tuple[str, list[tuple[str, bytes]]]:
    """The text that a person reads, and the files. Forwarded mails inside are files and stay unopened."""
    plain, html, files = "", "", []
    # Bounded, since a small mail can have very many parts.
    for number, part in enumerate(mail.walk()):
        if number >= MAX_PARTS:
            break
        if part.is_multipart():
            continue
        content = part.get_payload(decode=True)
        if not isinstance(content, bytes):
            continue
        name = _file_name(part)
        if part.get_content_disposition() == "attachment" or name:
            # Pictures inside of a mail's text, such as logos, are no files that a person sent.
            if not (part.get("Content-ID") and part.get_content_disposition() != "attachment"):
                files.append((name or "file", content))
        elif part.get_content_type() == "text/plain" and not plain:
            plain = _decoded(content, part)
        elif part.get_content_type() == "text/html" and not html:
            html = _decoded(content, part)
    return plain if plain.strip() else _from_html(html), files


def _file_name(part: Any) -> str:
    try:
        return str(part.get_filename() or "")
    except Exception:  # noqa: BLE001 (the same)
        return ""


def _decoded(content: bytes, part: Any) -> str:
    charset = part.get_content_charset() or "utf-8"
    try:
        return content.decode(charset, errors="replace")
    except LookupError:
        return content.decode("utf-8", errors="replace")


def _from_html(html: str) -> str:
    if not html:
        return ""
    try:
        # Deeply nested markup exhausts the stack of the parsers below.
        require_shallow(html[:500_000])
        visible = nh3.clean(html[:500_000], tags=nh3.ALLOWED_TAGS - _UNREAD, attributes={}, clean_content_tags=_UNREAD)
        return parse_html(visible.encode(), "mail").text
    except Unreadable:
        return ""


def _own_words(text: str) -> str:
    """The text without what it quotes and without a signature; all of it where nothing else would be left."""
    text = text.replace("\r\n", "\n").strip()[:MAX_TEXT]
    if not text:
        return ""
    replies = Replies(text=text, languages=list(LANGUAGES), keep_hyphen_lists=True).read().replies
    newest = replies[0] if replies else None
    body = (newest.body or newest.content or "") if newest else text
    lines = [line for line in body.strip().split("\n") if not line.lstrip().startswith(">")]
    while lines and (not lines[-1].strip() or _ATTRIBUTION.fullmatch(lines[-1].strip())):
        lines.pop()
    return "\n".join(lines).strip() or text


def _is_automatic(mail: EmailMessage) -> bool:
    submitted = _header(mail, "Auto-Submitted").partition(";")[0].strip().lower()
    precedence = _header(mail, "Precedence").strip().lower()
    empty_path = _header(mail, "Return-Path").strip() == "<>"
    marked = any(_header(mail, name) for name in ("X-Autoreply", "X-Autorespond", "List-Id", "List-Unsubscribe"))
    return submitted not in ("", "no") or precedence in _BULK or empty_path or marked or _is_report(mail)


def _is_report(mail: EmailMessage) -> bool:
    return mail.get_content_type() == "multipart/report"


def _failed(mail: EmailMessage) -> list[str]:
    """The ids of our mails that a report of delivery says have failed for good."""
    if not _is_report(mail):
        return []
    parts = list(mail.walk())[:MAX_PARTS]
    status = [part for part in parts if part.get_content_type() == "message/delivery-status"]
    said = "\n".join(part.as_string() for part in status).lower()
    if "action: failed" not in said:
        return []
    found = []
    for part in parts:
        if part.get_content_type() == "text/rfc822-headers":
            content = part.get_payload(decode=True)
            original = email.message_from_bytes(content if isinstance(content, bytes) else b"")
            found += _ID.findall(str(original.get("Message-ID", "")))
        elif part is not mail and part.get("Message-ID"):
            found += _ID.findall(str(part.get("Message-ID")))
    return found[:5]


def _results(mail: EmailMessage) -> list[dict[str, Any]]:
    """Authentication results, the server that wrote them first. A sender may add some: only those of the company's own
    server count."""
    found = []
    for value in _headers(mail, "Authentication-Results")[:5]:
        server, _, rest = value.partition(";")
        found.append({"server": server.strip().split(" ")[0].lower()[:200], **_verdicts(rest)})
    return found


def _verdicts(text: str) -> dict[str, str]:
    """The verdict of each method, which stands at the beginning of its part: what follows may be the sender's own
    words. Of two verdicts that differ none counts."""
    said: dict[str, set[str]] = {}
    for part in _COMMENT.sub(" ", text.lower()[:4000]).split(";"):
        if verdict := _RESULT.match(part):
            said.setdefault(verdict[1], set()).add(verdict[2])
    return {method: words.pop() if len(words) == 1 else "unclear" for method, words in said.items()}
