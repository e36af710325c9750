"""A conversation as staff read it: one line per recorded entry, with private notes in their place."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from django.utils import timezone
from django.utils.dateparse import parse_datetime
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from apps.inbox.models import Note
from apps.inbox.rules import split_mentions
from apps.sessions.chronicle import SAID
from apps.sessions.enums import EntryKind, Owner, Sender
from apps.sessions.models import ChatSession, ChronicleEntry
from apps.sessions.rules import author_name
from apps.visitors.file_types import KINDS

PICTURES = {kind.name for kind in KINDS.values() if kind.group == "pictures"}
# Lines for entries that settle a prompt, by status; the text of an answer is part of the prompt's own line.
_SETTLED = {
    EntryKind.DECISION: {"withdrawn": gettext_lazy("A question to the visitor was withdrawn")},
    EntryKind.SECURE_STORED: {
        "answered": gettext_lazy("The visitor entered it. It is stored encrypted"),
        "withdrawn": gettext_lazy("The request for confidential details was withdrawn"),
    },
}


@dataclass(frozen=True)
class Prompt:
    """What the visitor was asked to choose or to enter.

    `state` is that of its card; `options` are (label, chosen); `fields` of a form are (label, answer); `secret` is the
    label of confidential details; `until` is when it expires.
    """

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
    """One line of the conversation.

    `face` is `visitor`, `bot` or `human` for a message, `note` for a private note, and empty for an event. `turn` is
    the turn of a bot message, else 0; `release` is the release that gave it, if any.
    `parts` of a note are its text, each with whether it mentions a teammate.
    `file` is the payload of a sent file, with the id that opens it.
    """

    seq: int
    at: datetime
    face: str
    who: str
    text: str
    citations: tuple[dict[str, object], ...] = ()
    turn: int = 0
    release: int = 0
    file: dict[str, Any] | None = None
    note: str = ""
    parts: Sequence[tuple[str, bool]] = ()
    prompt: Prompt | None = None

    @property
    def is_picture(self) -> bool:
        """True for a sent file that is shown as a picture."""
        return self.file is not None and self.file.get("kind") in PICTURES

    @property
    def key(self) -> str:
        """The id of the line's element on the page."""
        return f"note-{self.note}" if self.note else f"line-{self.seq}"


def thread_lines(
    session: ChatSession, entries: Sequence[ChronicleEntry], *, moment: datetime, releases: Mapping[int, int]
) -> list[Line]:
    """Return the entries as lines, as of `moment`: prompts past their time read as expired. `releases` are
    numbers of releases by turn."""
    settled = _settled_prompts(entries)
    lines = (_line(session, entry, _prompt(entry, settled, moment)) for entry in entries)
    return [replace(line, release=releases.get(line.turn, 0)) for line in lines if line.text]


def with_notes(lines: Iterable[Line], notes: Iterable[Note], *, since: int) -> list[Line]:
    """Return the lines with private notes where they were written; notes from before entry `since` are left out."""
    note_lines = [_note(note) for note in notes if note.after + 1 >= since]
    return sorted([*lines, *note_lines], key=lambda line: (line.seq, bool(line.note), line.at))


def last_seen(lines: Iterable[Line], read_seq: int) -> int:
    """Return the number of the last message to the visitor that they have seen, 0 for none."""
    return max(
        (line.seq for line in lines if line.face in (Sender.BOT, Sender.HUMAN) and line.seq <= read_seq), default=0
    )


def _note(note: Note) -> Line:
    who = note.author.display_name if note.author else "A colleague"
    parts = split_mentions(note.text, [user.display_name for user in note.mentioned])
    return Line(note.after, note.created_at, "note", who, note.text, note=str(note.pk), parts=parts)


def _line(session: ChatSession, entry: ChronicleEntry, prompt: Prompt | None) -> Line:
    if prompt:
        text = entry.text or _("Please enter confidentially: {what}").format(what=prompt.secret)
        return Line(entry.seq, entry.created_at, entry.sender, _author(session, entry), text, prompt=prompt)
    if entry.kind in SAID and entry.sender != Sender.SYSTEM:
        citations = tuple(entry.payload.get("citations", ()))
        turn = entry.turn if entry.sender == Sender.BOT else 0
        return Line(entry.seq, entry.created_at, entry.sender, _author(session, entry), entry.text, citations, turn)
    if entry.kind == EntryKind.FILE:
        author = _author(session, entry)
        return Line(entry.seq, entry.created_at, entry.sender, author, entry.text, file=entry.payload)
    return Line(entry.seq, entry.created_at, "", "", _event_text(entry))


def _settled_prompts(entries: Iterable[ChronicleEntry]) -> dict[str, dict[str, object]]:
    """Return the outcome of every settled prompt, by its card."""
    return {
        str(entry.payload.get("request_id") or entry.payload.get("ref_id")): entry.payload
        for entry in entries
        if entry.kind in _SETTLED and entry.payload.get("status")
    }


def _prompt(entry: ChronicleEntry, settled: dict[str, dict[str, Any]], moment: datetime) -> Prompt | None:
    """Return the prompt of this entry, or None."""
    payload = entry.payload
    if entry.kind not in (EntryKind.DECISION, EntryKind.SECURE_INPUT) or payload.get("status"):
        return None
    card = str(payload.get("request_id") or payload.get("ref_id"))
    until, outcome = parse_datetime(str(payload.get("expires_at") or "")), settled.get(card, {})
    is_late = until is not None and until <= moment
    chosen, answers = outcome.get("selected_value"), outcome.get("answers", {})
    return Prompt(
        card=card,
        state=str(outcome.get("status") or ("expired" if is_late else "open")),
        until=until,
        rationale=str(payload.get("rationale") or (payload.get("guidance") or {}).get("instructions", "")),
        options=tuple((option["label"], option["value"] == chosen) for option in payload.get("options", ())),
        risk=str(payload.get("risk_level", "")),
        own_words=bool(payload.get("allow_freetext")),
        secret=str(payload.get("label", "")) if entry.kind == EntryKind.SECURE_INPUT else "",
        fields=tuple((field["label"], answers.get(field["name"], "")) for field in payload.get("fields", ())),
    )


def _author(session: ChatSession, entry: ChronicleEntry) -> str:
    if entry.sender == Sender.VISITOR:
        return session.visitor_name
    if entry.sender == Sender.HUMAN:
        return entry.author.display_name if entry.author else author_name(entry) or _("A colleague")
    return session.deployment.title


def _event_text(entry: ChronicleEntry) -> str:
    if entry.kind == EntryKind.OWNER:
        if entry.payload.get("owner") == Owner.BOT:
            return _("The bot is answering again")
        name = entry.payload.get("name") or _("A colleague")
        return _("{name} took over; the bot is silent").format(name=name)
    if entry.kind == EntryKind.ACCESS:
        expires = parse_datetime(str(entry.payload.get("expires_at") or ""))
        level = entry.payload.get("level", "")
        if expires is None:
            return _("Access is now {level}").format(level=level)
        return _("Access is now {level}, until {time}").format(level=level, time=f"{timezone.localtime(expires):%H:%M}")
    if entry.kind in _SETTLED:
        return str(_SETTLED[EntryKind(entry.kind)].get(str(entry.payload.get("status", "")), ""))
    return entry.text.rstrip(".")
