"""How does a conversation read to staff? One line a recorded entry: who said it, or what happened. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.utils import timezone
from django.utils.dateparse import parse_datetime

from apps.sessions.chronicle import SAID
from apps.sessions.enums import EntryKind, Owner, Sender
from apps.sessions.models import ChatSession, ChronicleEntry

# What became of what the visitor was asked, by its status; the words of an answer stand in the answer.
_ASKED = {
    EntryKind.DECISION: {"withdrawn": "A question to the visitor was taken back"},
    EntryKind.SECURE_INPUT: {"": "The visitor was asked for something secret"},
    EntryKind.SECURE_STORED: {
        "answered": "The visitor gave it, sealed",
        "withdrawn": "The question for something secret was taken back",
    },
}


@dataclass(frozen=True)
class Line:
    """`face` is `visitor`, `bot` or `human` for something said, and empty for something that happened. `turn` is the
    turn in which the bot said it, 0 for anything else; `file` a file that was sent, with the id it is opened by."""

    seq: int
    at: datetime
    face: str
    who: str
    text: str
    citations: tuple[dict[str, Any], ...] = ()
    turn: int = 0
    file: dict[str, Any] | None = None


def lines_of(session: ChatSession, entries: Iterable[ChronicleEntry]) -> list[Line]:
    return [line for line in (_line(session, entry) for entry in entries) if line.text]


def _line(session: ChatSession, entry: ChronicleEntry) -> Line:
    if entry.kind in SAID and entry.sender != Sender.SYSTEM:
        citations = tuple(entry.payload.get("citations", ()))
        turn = entry.turn if entry.sender == Sender.BOT else 0
        return Line(entry.seq, entry.created_at, entry.sender, _who(session, entry), entry.text, citations, turn)
    if entry.kind == EntryKind.FILE:
        return Line(entry.seq, entry.created_at, entry.sender, _who(session, entry), entry.text, file=entry.payload)
    return Line(entry.seq, entry.created_at, "", "", _happened(session, entry))


def _who(session: ChatSession, entry: ChronicleEntry) -> str:
    if entry.sender == Sender.VISITOR:
        return session.visitor_name
    if entry.sender == Sender.HUMAN:
        return entry.author.display_name if entry.author else str(entry.payload.get("name", "A colleague"))
    return session.deployment.title


def _happened(session: ChatSession, entry: ChronicleEntry) -> str:
    if entry.kind == EntryKind.OWNER:
        if entry.payload.get("owner") == Owner.BOT:
            return "The bot answers again"
        return f"{entry.payload.get('name', 'A colleague')} took over; the bot is silent"
    if entry.kind == EntryKind.ACCESS:
        return _access(entry.payload)
    if entry.kind in _ASKED:
        return _ASKED[EntryKind(entry.kind)].get(str(entry.payload.get("status", "")), "")
    return entry.text.rstrip(".")


def _access(payload: dict[str, Any]) -> str:
    level = payload.get("level", "")
    expires = parse_datetime(str(payload.get("expires_at") or ""))
    until = f", until {timezone.localtime(expires):%H:%M}" if expires else ""
    return f"Access is now {level}{until}"
