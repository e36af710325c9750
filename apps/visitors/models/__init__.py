"""What visitors are asked (`prompts`), and what they do beside talking (`visitors`).

The models keep the label `silas_sessions`, under which their tables, content types and migrations were made.
"""

from apps.visitors.models.proactive_messages import ProactiveMessage
from apps.visitors.models.prompts import VisitorCard
from apps.visitors.models.visitors import (
    Consent,
    FormAnswers,
    FormQuestion,
    Rating,
    TranscriptRequest,
    VisitorFile,
    VisitorOffers,
)

__all__ = [
    "Consent",
    "FormAnswers",
    "FormQuestion",
    "ProactiveMessage",
    "Rating",
    "TranscriptRequest",
    "VisitorCard",
    "VisitorFile",
    "VisitorOffers",
]
