"""How does a conversation read to staff? One line a recorded entry: who said it, or what happened. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.utils import timezone
from django.utils.dateparse import parse_datetime

from apps.sessions.chronicle import SAID
from apps.sessions.enums import EntryKind, Owner, Sender
from apps.sessions.models import ChatSession, ChronicleEntry, Note

# What became of what the visitor was asked, by its status; the words of an answer stand in the answer.
_SETTLED = {
    EntryKind.DECISION: {"withdrawn": "A question to the visitor was taken back"},
    EntryKind.SECURE_STORED: {
        "answered": "The visitor gave it, sealed",
        "withdrawn": "The question for something secret was taken back",
    },
}


@dataclass(frozen=True)
class Asked:
    """What the visitor was asked: `state` as of its card, `options` as label and whether it was chosen, `until` when
    its time is up. `fields` of a form as label and answer. `secret`: what was wanted in secret."""

    card: str
    state: str
    until: datetime | None
    rationale: str = ""
    options: tuple[tuple[str, bool], ...] = ()
    risk: str = ""
    own_words: bool = False
    secret: str = ""
    fields: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Line:
    """`face` is `visitor`, `bot` or `human` for something said, `note` for what only staff read, and empty for what
    happened. `turn` is the turn in which the bot said it, 0 for anything else; `file` a file that was sent, with the
    id it is opened by; `asked` what the visitor was asked to press or to give. `key` is the line's own on its page."""

    seq: int
    at: datetime
    face: str
    who: str
    text: str
    citations: tuple[dict[str, Any], ...] = ()
    turn: int = 0
    file: dict[str, Any] | None = None
    note: str = ""
    asked: Asked | None = None

    @property
    def key(self) -> str:
        return f"note-{self.note}" if self.note else f"line-{self.seq}"


def with_notes(lines: Iterable[Line], notes: Iterable[Note], *, since: int) -> list[Line]:
    """The lines with the notes of staff where they were written; notes from before the entry `since`, with which the
    lines begin, are left out."""
    told = [_note(note) for note in notes if note.after + 1 >= since]
    return sorted([*lines, *told], key=lambda line: (line.seq, bool(line.note), line.at))


def _note(note: Note) -> Line:
    who = note.author.display_name if note.author else "A colleague"
    return Line(note.after, note.created_at, "note", who, note.text, note=str(note.pk))


def lines_of(session: ChatSession, entries: Sequence[ChronicleEntry], *, moment: datetime) -> list[Line]:
    """As it stands at `moment`: a question whose time is up says so itself."""
    settled = _settled(entries)
    lines = (_line(session, entry, _asked(entry, settled, moment)) for entry in entries)
    return [line for line in lines if line.text]


def _line(session: ChatSession, entry: ChronicleEntry, asked: Asked | None) -> Line:
    if asked:
        text = entry.text or f"Please give this in secret: {asked.secret}"
        return Line(entry.seq, entry.created_at, entry.sender, _who(session, entry), text, asked=asked)
    if entry.kind in SAID and entry.sender != Sender.SYSTEM:
        citations = tuple(entry.payload.get("citations", ()))
        turn = entry.turn if entry.sender == Sender.BOT else 0
        return Line(entry.seq, entry.created_at, entry.sender, _who(session, entry), entry.text, citations, turn)
    if entry.kind == EntryKind.FILE:
        return Line(entry.seq, entry.created_at, entry.sender, _who(session, entry), entry.text, file=entry.payload)
    return Line(entry.seq, entry.created_at, "", "", _happened(session, entry))


def _settled(entries: Iterable[ChronicleEntry]) -> dict[str, dict[str, Any]]:
    """What became of each question that is settled, by its card."""
    return {
        str(entry.payload.get("request_id") or entry.payload.get("ref_id")): entry.payload
        for entry in entries
        if entry.kind in _SETTLED and entry.payload.get("status")
    }


def _asked(entry: ChronicleEntry, settled: dict[str, dict[str, Any]], moment: datetime) -> Asked | None:
    """What this entry asks of the visitor; None where it asks nothing."""
    told = entry.payload
    if entry.kind not in (EntryKind.DECISION, EntryKind.SECURE_INPUT) or told.get("status"):
        return None
    card = str(told.get("request_id") or told.get("ref_id"))
    until, became = parse_datetime(str(told.get("expires_at") or "")), settled.get(card, {})
    late = until is not None and until <= moment
    chosen = became.get("selected_value")
    return Asked(
        card=card,
        state=str(became.get("status") or ("expired" if late else "open")),
        until=until,
        rationale=str(told.get("rationale") or (told.get("guidance") or {}).get("instructions", "")),
        options=tuple((each["label"], each["value"] == chosen) for each in told.get("options", ())),
        risk=str(told.get("risk_level", "")),
        own_words=bool(told.get("allow_freetext")),
        secret=str(told.get("label", "")) if entry.kind == EntryKind.SECURE_INPUT else "",
        fields=_fields(told, became.get("answers", {})),
    )


def _fields(told: dict[str, Any], answers: dict[str, str]) -> tuple[tuple[str, str], ...]:
    return tuple((each["label"], answers.get(each["name"], "")) for each in told.get("fields", ()))


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
    if entry.kind in _SETTLED:
        return _SETTLED[EntryKind(entry.kind)].get(str(entry.payload.get("status", "")), "")
    return entry.text.rstrip(".")


def _access(payload: dict[str, Any]) -> str:
    level = payload.get("level", "")
    expires = parse_datetime(str(payload.get("expires_at") or ""))
    until = f", until {timezone.localtime(expires):%H:%M}" if expires else ""
    return f"Access is now {level}{until}"
