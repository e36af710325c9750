"""Read an export of Chatwoot, Intercom or Zendesk into plain records. Runs in the sandbox, without Django.

A file is JSON (one list, one object, or a page of an API), JSON lines, or CSV with contacts. Each record says what it
is by its fields; the names of the fields are in docs/imports.md. The blob of an answer is JSON lines, contacts first.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from datetime import UTC, datetime
from html.parser import HTMLParser
from typing import Any

MAX_RECORDS, MAX_MESSAGES, MAX_PROBLEMS = 100_000, 1000, 500
MAX_TEXT = 20_000
# Keys of a page of an API that hold its list.
_LISTS = ("payload", "data", "contacts", "conversations", "users", "tickets", "macros", "canned_responses", "results")
_BLOCKS = frozenset({"p", "br", "div", "li", "tr", "h1", "h2", "h3", "blockquote"})


def read(data: bytes, system: str, name: str) -> tuple[dict[str, Any], bytes]:
    """`{"problems": [[line, reason]], "records": count}`, and the records."""
    reader = _Reader(system)
    for line, item in _items(data, name):
        if reader.is_full:
            reader.problems.append([line, "too_large"])
            break
        reader.take(line, item)
    rows = [*reader.contacts.values(), *reader.conversations, *reader.replies]
    blob = "\n".join(json.dumps(row) for row in rows).encode()
    return {"problems": reader.problems[:MAX_PROBLEMS], "records": len(rows)}, blob


def _items(data: bytes, name: str) -> Iterator[tuple[int, object]]:
    """Each item with its line, or its place in the list; None for one that is no JSON."""
    text = data.decode("utf-8-sig", errors="replace")
    if name.lower().endswith(".csv"):
        rows = csv.DictReader(io.StringIO(text, newline=""))
        for row in rows:
            yield rows.line_num, {(key or "").strip().lower(): value for key, value in row.items() if key}
        return
    try:
        whole = json.loads(text)
    except (ValueError, RecursionError):
        for number, line in enumerate(text.splitlines(), 1):
            if line.strip():
                yield number, _parsed(line)
        return
    yield from enumerate(_unpacked(whole), 1)


def _parsed(line: str) -> Any:
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return None


def _unpacked(whole: object) -> list[object]:
    """The list in a page of an API, as deep as it is; an object without one is the only item."""
    for _ in range(3):
        if isinstance(whole, list):
            return whole
        if not isinstance(whole, dict):
            return [whole]
        inner = [whole[key] for key in _LISTS if isinstance(whole.get(key), list | dict)]
        if not inner or _kind_of(whole):
            return [whole]
        if all(isinstance(each, list) for each in inner):
            return [item for each in inner for item in each]
        whole = inner[0]
    return [whole]


def _kind_of(item: dict[str, Any]) -> str:
    """What a record is; "" for none of ours."""
    if "short_code" in item or item.get("type") == "macro" or isinstance(item.get("actions"), list):
        return "reply"
    if "id" not in item:
        return ""
    if "requester_id" in item or "conversation_parts" in item or ("source" in item and "contacts" in item):
        return "conversation"
    if isinstance(item.get("messages"), list) or (isinstance(item.get("meta"), dict) and "sender" in item["meta"]):
        return "conversation"
    if any(name in item for name in ("email", "phone", "phone_number", "identifier", "external_id")):
        return "contact"
    return ""


class _Reader:
    """Gathers records. A person named by a conversation and not in the file is a contact too."""

    def __init__(self, system: str) -> None:
        self.system = system
        self.contacts: dict[str, dict[str, object]] = {}
        self.conversations: list[dict[str, object]] = []
        self.replies: list[dict[str, object]] = []
        self.problems: list[list[object]] = []

    @property
    def is_full(self) -> bool:
        return len(self.contacts) + len(self.conversations) + len(self.replies) >= MAX_RECORDS

    def take(self, line: int, item: object) -> None:
        if not isinstance(item, dict):
            self.problems.append([line, "not_json"])
            return
        # Zendesk's JSON export wraps each record in its kind.
        if len(item) == 1 and isinstance(inner := next(iter(item.values())), dict):
            item = inner
        match _kind_of(item):
            case "contact":
                self._contact(line, item)
            case "conversation":
                self._conversation(line, item)
            case "reply":
                self._reply(line, item)
            case _:
                self.problems.append([line, "not_known"])

    def _contact(self, line: int, item: dict[str, object]) -> None:
        if not (own := _id(item.get("id"))):
            self.problems.append([line, "no_id"])
            return
        attributes = item.get("custom_attributes") or item.get("user_fields") or {}
        self.contacts[own] = {
            "kind": "contact",
            "line": line,
            "external_id": own,
            "customer": _text(item.get("identifier") or item.get("external_id"))[:80],
            "name": _text(item.get("name"))[:120],
            "email": _text(item.get("email")),
            "phone": _text(item.get("phone_number") or item.get("phone")),
            "attributes": {
                str(key)[:40]: value
                for key, value in (attributes.items() if isinstance(attributes, dict) else ())
                if isinstance(value, str | int | float | bool)
            },
        }

    def _conversation(self, line: int, item: dict[str, object]) -> None:
        own = _id(item.get("id"))
        whose, messages = _CONVERSATIONS[self.system](item)
        if not own or not (contact := _id(whose.get("id"))):
            self.problems.append([line, "no_contact" if own else "no_id"])
            return
        if contact not in self.contacts:
            self._contact(line, {**whose, "id": contact})
        said = [message for message in messages if message["text"]][:MAX_MESSAGES]
        if not said:
            self.problems.append([line, "no_text"])
            return
        self.conversations.append(
            {
                "kind": "conversation",
                "line": line,
                "external_id": own,
                "contact": contact,
                "subject": _text(item.get("title") or item.get("subject"))[:200],
                "state": _text(item.get("state") or item.get("status"))[:20],
                "started_at": _time(item.get("created_at")) or said[0]["at"],
                "messages": said,
            }
        )

    def _reply(self, line: int, item: dict[str, object]) -> None:
        actions = item.get("actions")
        values = [each for each in actions if isinstance(each, dict)] if isinstance(actions, list) else []
        macro = [_text(each.get("value")) for each in values if str(each.get("field", "")).startswith("comment_value")]
        text = _text(item.get("content") or item.get("body_text")) or _plain(item.get("body")) or "\n".join(macro)
        if not text:
            self.problems.append([line, "no_text"])
            return
        name = _text(item.get("short_code") or item.get("name") or item.get("title"))
        self.replies.append({"kind": "reply", "line": line, "name": " ".join(name.split())[:40], "text": text})


def _chatwoot(item: dict[str, object]) -> tuple[dict[str, object], list[dict[str, str]]]:
    """`message_type`: 0 is the contact's, 1 the team's, 2 an event, 3 a template. A private one is a note."""
    sides = {0: "customer", 1: "team", 3: "bot", "incoming": "customer", "outgoing": "team", "template": "bot"}
    messages = []
    for each in _dicts(item.get("messages")):
        side = sides.get(each.get("message_type", ""))
        if side and not each.get("private"):
            sender = _dict(each.get("sender"))
            messages.append(_message(side, sender.get("name"), _text(each.get("content")), each.get("created_at")))
    return _dict(_dict(item.get("meta")).get("sender")), messages


def _intercom(item: dict[str, object]) -> tuple[dict[str, object], list[dict[str, str]]]:
    """Bodies are HTML. Parts of other kinds than comments are events and notes."""
    source, parts = _dict(item.get("source")), _dict(item.get("conversation_parts"))
    said = [{**source, "created_at": item.get("created_at")}]
    said += [each for each in _dicts(parts.get("conversation_parts")) if each.get("part_type") in ("comment", "open")]
    sides = {"user": "customer", "lead": "customer", "contact": "customer", "bot": "bot"}
    messages = []
    for each in said:
        author = _dict(each.get("author"))
        side = sides.get(str(author.get("type")), "team")
        messages.append(_message(side, author.get("name"), _plain(each.get("body")), each.get("created_at")))
    (whose, *_) = _dicts(_dict(item.get("contacts")).get("contacts")) or [_dict(source.get("author"))]
    return whose, messages


def _zendesk(item: dict[str, object]) -> tuple[dict[str, object], list[dict[str, str]]]:
    """Without comments, the ticket's description is what its requester wrote. One that is not public is a note."""
    requester, messages = item.get("requester_id"), []
    for each in _dicts(item.get("comments")):
        if each.get("public", True):
            side = "customer" if each.get("author_id") == requester else "team"
            text = _text(each.get("plain_body")) or _plain(each.get("html_body")) or _text(each.get("body"))
            messages.append(_message(side, "", text, each.get("created_at")))
    if not messages:
        messages.append(_message("customer", "", _text(item.get("description")), item.get("created_at")))
    return {**_dict(item.get("requester")), "id": requester}, messages


_CONVERSATIONS = {"chatwoot": _chatwoot, "intercom": _intercom, "zendesk": _zendesk}


def _message(sender: str, author: object, text: str, at: object) -> dict[str, str]:
    return {"sender": sender, "author": _text(author)[:120], "text": text[:MAX_TEXT], "at": _time(at)}


def _dict(value: object) -> dict[str, object]:
    return value if isinstance(value, dict) else {}


def _dicts(value: object) -> list[dict[str, object]]:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def _id(value: object) -> str:
    return str(value)[:100] if isinstance(value, int | str) and not isinstance(value, bool) and str(value) else ""


def _text(value: object) -> str:
    text = str(value) if isinstance(value, str | int) and not isinstance(value, bool) else ""
    return text.replace("\0", "").encode("utf-8", "ignore").decode().strip()[:MAX_TEXT]


def _time(value: object) -> str:
    """As ISO 8601; seconds since 1970 or ISO 8601 in, "" for anything else."""
    try:
        if isinstance(value, int | float) or (isinstance(value, str) and value.isdecimal()):
            return datetime.fromtimestamp(float(value), UTC).isoformat()
        moment = datetime.fromisoformat(str(value))
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).isoformat()
    except (ValueError, OverflowError, OSError):
        return ""


class _Plain(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.parts: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in _BLOCKS:
            self.parts.append("\n")

    def handle_data(self, data: str) -> None:
        self.parts.append(data)


def _plain(body: object) -> str:
    """The text of a piece of HTML."""
    parser = _Plain()
    parser.feed(_text(body))
    parser.close()
    lines = (" ".join(line.split()) for line in "".join(parser.parts).splitlines())
    return "\n".join(line for line in lines if line)
