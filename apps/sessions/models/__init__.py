"""A conversation's rows (`conversations`), and what staff keep about it (`inbox`)."""

from apps.sessions.models.conversations import AccessLevel, ChatSession, ChronicleEntry, MessageNonce, Turn
from apps.sessions.models.inbox import CannedReply, DeskState, Label, Note, SessionLabel

__all__ = [
    "AccessLevel",
    "CannedReply",
    "ChatSession",
    "ChronicleEntry",
    "DeskState",
    "Label",
    "MessageNonce",
    "Note",
    "SessionLabel",
    "Turn",
]
