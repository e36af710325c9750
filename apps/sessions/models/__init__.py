"""A conversation's rows (`conversations`), what its visitor was asked (`asked`), what staff keep beside it (`desk`),
and what visitors do beside talking (`beside`)."""

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
