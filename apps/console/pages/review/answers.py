"""The card that asks whether an answer to a knowledge gap is published: its questions, sources and rendered text."""

from __future__ import annotations

from dataclasses import dataclass

from apps.approvals.cards.schemas import EXACT_TEXT
from apps.approvals.models import Card
from apps.knowledge import gaps
from apps.knowledge.models import GapQuestion, GapTopic
from apps.sessions.retrieval import all_levels
from llm.briefing import Passage

_QUESTIONS = 3


@dataclass(frozen=True)
class ProposedAnswer:
    """`text` is the one that the card binds; `sources` are the passages nearest to the questions."""

    topic: GapTopic
    text: str
    questions: list[GapQuestion]
    sources: tuple[Passage, ...]


def proposed_answer(card: Card, *, with_sources: bool) -> ProposedAnswer | None:
    """The answer that this card would publish, or None for another card or a topic that was merged into another. The
    sources may be documents of any access level."""
    topic = GapTopic.objects.filter(pk=card.subject_id).first() if card.subject_kind == gaps.SUBJECT else None
    if topic is None:
        return None
    text = next((fact["text"] for fact in card.facts if fact["label"] == EXACT_TEXT), "")
    questions = list(GapQuestion.objects.filter(topic=topic)[:_QUESTIONS])
    sources = gaps.nearest_passages(topic, levels=all_levels()) if with_sources and card.is_open else ()
    return ProposedAnswer(topic, text, questions, sources)
