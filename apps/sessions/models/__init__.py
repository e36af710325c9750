"""A conversation's rows (`conversations`), and those of what visitors do beside talking (`beside`)."""

from apps.sessions.models.beside import (
    Consent,
    FormAnswers,
    FormQuestion,
    Rating,
    TranscriptRequest,
    VisitorFile,
    VisitorOffers,
)
from apps.sessions.models.conversations import PUBLIC, AccessLevel, ChatSession, ChronicleEntry, MessageNonce, Turn

__all__ = [
    "PUBLIC",
    "AccessLevel",
    "ChatSession",
    "ChronicleEntry",
    "Consent",
    "FormAnswers",
    "FormQuestion",
    "MessageNonce",
    "Rating",
    "TranscriptRequest",
    "Turn",
    "VisitorFile",
    "VisitorOffers",
]
