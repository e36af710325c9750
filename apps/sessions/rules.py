"""Frames of recorded entries, the groups that receive them, who may speak, and valid level definitions. Pure.

Frames are those of the contract's widget socket; error texts about levels are for the owner who edits them.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Any
from uuid import UUID

if TYPE_CHECKING:
    from apps.sessions.models import ChatSession, ChronicleEntry

# A paragraph of a bot's answer is cut to this for the list of conversations.
PREVIEW_CHARS = 140
# How many earlier messages of the visitor an identity check may read: a name in one, the date of birth in the next.
CLAIM_MESSAGES = 2


def group_of(session_id: UUID) -> str:
    """The channel-layer group of everybody present in a conversation."""
    return f"chat.{session_id.hex}"


def frame_of(entry: ChronicleEntry) -> dict[str, Any]:
    """The frame a visitor gets for a recorded entry: type, seq, time and what its kind says."""
    frame = {"type": entry.kind, "seq": entry.seq, "timestamp": entry.created_at.isoformat(), **entry.payload}
    if entry.kind == "message":
        frame |= {"text": entry.text, "sender": entry.sender}
        # A colleague's is the console's own business.
        frame |= {"client_id": entry.client_id} if entry.client_id and entry.sender == "visitor" else {}
    if entry.kind == "status":
        frame |= {"text": entry.text}
    if entry.kind in ("decision", "secure_input_request", "secure_input_completed", "file"):
        frame |= {"sender": entry.sender}
    return frame


def may_speak(owner: str, epoch: int, *, began_in: int) -> bool:
    """May what a bot's turn came to be recorded? Only while the bot answers, in the very epoch the turn began in: who
    took over and handed back meanwhile has heard what the turn has not."""
    return owner == "bot" and epoch == began_in


def language_of(session: ChatSession) -> str:
    """In which language the platform speaks to this visitor: the one they wrote last, else their browser's."""
    return session.language or session.locale[:2].lower()


def preview_of(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= PREVIEW_CHARS else line[: PREVIEW_CHARS - 1].rstrip() + "…"


def tools_problem(listed: Any, known: Collection[str]) -> str:
    """A level may name tools that there are."""
    return _names_problem(listed, known, "tool", "of this deployment")


def requires_problem(listed: Any, known: Collection[str], *, is_public: bool) -> str:
    """A level above public names gates that can tell who somebody is; public names none."""
    if problem := _names_problem(listed, known, "gate", "that can tell who somebody is"):
        return problem
    if is_public:
        return "Public needs no gate: it is what everybody has." if listed else ""
    return "" if listed else "Name at least one gate: a level that needs none would be everybody's."


def _names_problem(listed: Any, known: Collection[str], what: str, whose: str) -> str:
    if not isinstance(listed, list) or not all(isinstance(name, str) for name in listed):
        return f'Give a list of names, such as ["{min(known, default="name")}"].'
    wrong = [name for name in listed if name not in known]
    there = ", ".join(sorted(known)) or "none"
    return f"{wrong[0][:80]} is no {what} {whose}. There are: {there}." if wrong else ""
