"""A conversation's rows (`conversations`), prompts put to its visitor (`prompts`), what staff keep about it (`inbox`),
and what visitors do beside talking (`visitors`)."""

from apps.sessions.models.conversations import AccessLevel, ChatSession, ChronicleEntry, MessageNonce, Turn
from apps.sessions.models.inbox import CannedReply, DeskState, Label, Note, SessionLabel
from apps.sessions.models.prompts import VisitorCard
from apps.sessions.models.visitors import (
    Consent,
    FormAnswers,
    FormQuestion,
    Rating,
    TranscriptRequest,
    VisitorFile,
    VisitorOffers,
)

__all__ = [
    "AccessLevel",
    "CannedReply",
    "ChatSession",
    "ChronicleEntry",
    "Consent",
    "DeskState",
    "FormAnswers",
    "FormQuestion",
    "Label",
    "MessageNonce",
    "Note",
    "Rating",
    "SessionLabel",
    "TranscriptRequest",
    "Turn",
    "VisitorCard",
    "VisitorFile",
    "VisitorOffers",
]
