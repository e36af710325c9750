"""How does a recorded entry look on the wire, and which group hears of it? Pure (contract interfaces)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from uuid import UUID

if TYPE_CHECKING:
    from apps.sessions.models import ChronicleEntry

# A paragraph of a bot's answer is cut to this for the list of conversations.
PREVIEW_CHARS = 140


def group_of(session_id: UUID) -> str:
    """The channel-layer group of everybody present in a conversation."""
    return f"chat.{session_id.hex}"


def frame_of(entry: ChronicleEntry) -> dict[str, Any]:
    """The frame a visitor gets for a recorded entry: type, seq, time and what its kind says."""
    frame = {"type": entry.kind, "seq": entry.seq, "timestamp": entry.created_at.isoformat(), **entry.payload}
    if entry.kind == "message":
        frame |= {"text": entry.text, "sender": entry.sender}
        frame |= {"client_id": entry.client_id} if entry.client_id else {}
    if entry.kind == "status":
        frame |= {"text": entry.text}
    return frame


def preview_of(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= PREVIEW_CHARS else line[: PREVIEW_CHARS - 1].rstrip() + "…"
