"""The questions to the customer about a card, with their words from the conversation."""

from __future__ import annotations

from dataclasses import dataclass

from apps.approvals import queries
from apps.approvals.cards.questions import MOST_QUESTIONS, takes_question
from apps.approvals.models import Card, CardQuestion
from apps.sessions.models import ChronicleEntry


@dataclass(frozen=True)
class AskedQuestion:
    """`answer` is what the customer wrote next, unverified; empty without one."""

    row: CardQuestion
    text: str
    answer: str


def questions_about(card: Card) -> list[AskedQuestion]:
    """Return what the customer was asked about the card, in order."""
    rows = queries.questions_about(card) if card.session_id else []
    if not rows:
        return []
    wanted = {seq for row in rows for seq in (row.seq, row.answer_seq) if seq is not None}
    entries = ChronicleEntry.objects.filter(session_id=card.session_id, seq__in=wanted)
    texts: dict[int, str] = dict(entries.values_list("seq", "text"))
    return [AskedQuestion(row, texts.get(row.seq, ""), texts.get(row.answer_seq or 0, "")) for row in rows]


def may_ask(card: Card, asked: list[AskedQuestion]) -> bool:
    """True if the customer could be asked about this open card now, by a member who may decide it."""
    return (
        takes_question(card) and len(asked) < MOST_QUESTIONS and not any(question.row.is_waiting for question in asked)
    )
