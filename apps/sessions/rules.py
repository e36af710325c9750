"""Frames of recorded entries, the groups that receive them, who may speak, fitting suggestions, valid levels. Pure.

Frames are those of the contract's widget socket; error texts about levels are for the owner who edits them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING
from uuid import UUID

from apps.sessions.markdown import render_for_visitors
from llm.language_detection import told_language

if TYPE_CHECKING:
    from apps.sessions.models import ChatSession, ChronicleEntry

# A paragraph of a bot's answer is cut to this for the list of conversations.
PREVIEW_CHARS = 140
# How many earlier messages of the visitor an identity check may read: a name in one, the date of birth in the next.
CLAIM_MESSAGES = 2


def group_of(session_id: UUID) -> str:
    """The channel-layer group of everybody present in a conversation."""
    return f"chat.{session_id.hex}"


def watchers_of(tenant_id: UUID, session_id: UUID) -> str:
    """The channel-layer group of the tenant's consoles that have a conversation open.

    The tenant is part of the name, so that a console which names a foreign conversation joins an empty group.
    """
    return f"watch.{tenant_id.hex}.{session_id.hex}"


def frame_of(entry: ChronicleEntry) -> dict[str, object]:
    """The frame a visitor gets for a recorded entry: type, seq, time and what its kind says."""
    frame = {"type": entry.kind, "seq": entry.seq, "timestamp": entry.created_at.isoformat(), **entry.payload}
    if entry.kind == "message":
        frame |= {"text": entry.text, "sender": entry.sender}
        if entry.sender in ("bot", "human"):
            frame["html"] = render_for_visitors(entry.text)
        # A colleague's is the console's own business.
        frame |= {"client_id": entry.client_id} if entry.client_id and entry.sender == "visitor" else {}
    if entry.kind == "status":
        frame |= {"text": entry.text}
    if entry.kind in ("decision", "secure_input_request", "secure_input_completed", "file"):
        frame |= {"sender": entry.sender}
    return frame


def author_name(entry: ChronicleEntry) -> str:
    """The name that the member who wrote or sent this entry had then; "" for entries of programs and the platform."""
    if entry.sender != "human":
        return ""
    return str(entry.payload.get("author" if entry.kind == "file" else "name", ""))


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


def fitting_suggestions(
    wanted: Sequence[str], *, asked: str, answer: str, written: Sequence[str], greeting: str = ""
) -> list[str]:
    """What of `wanted` may be offered under `answer`: not what the visitor has just `asked`, and nothing in another
    language. The deployment's own suggestions (`written`) are in one language, which `greeting` tells where they are
    too short to tell it; a text whose language cannot be told is kept."""
    spoken = told_language(asked) or told_language(answer)
    ours = told_language("\n".join(written)) or told_language(greeting)
    languages = {text: ours if text in written else told_language(text) for text in wanted}
    return [
        text
        for text, language in languages.items()
        if _words(text) != _words(asked) and (not spoken or language in ("", spoken))
    ]


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", text.casefold())
