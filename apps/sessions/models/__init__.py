"""A conversation's rows (`conversations`), what its visitor was asked (`asked`), what staff keep beside it (`desk`),
and what visitors do beside talking (`beside`)."""

from apps.sessions.models.asked import VisitorCard
from apps.sessions.models.beside import (
    Consent,
    FormAnswers,
    FormQuestion,
    Rating,
    TranscriptRequest,
    VisitorFile,
    VisitorOffers,
)
from apps.sessions.models.conversations import AccessLevel, ChatSession, ChronicleEntry, MessageNonce, Turn
from apps.sessions.models.desk import CannedReply, DeskState, Label, Note, SessionLabel

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
