"""Ask a person about memories (spec 6.4). What an answer does is in `answers`.

Each question is asked once, with a decision card that authorizes nothing else. An unanswered or dismissed question
changes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from uuid import UUID

from apps.approvals.cards.lifecycle import withdraw_cards_about
from apps.approvals.cards.schemas import EXACT_TEXT, Binding, CardSubject, CardText, Fact
from apps.approvals.cards.services import open_card
from apps.approvals.enums import ApprovalScope, CardKind, Withdrawal
from apps.approvals.models import Card
from apps.memory.enums import QuestionKind, QuestionState
from apps.memory.marks import Mark, find_marks
from apps.memory.models import MemoryItem, MemoryQuestion
from kernel.clock import now
from kernel.stored_texts import stored_text
from kernel.tenancy import current_tenant_id
from kernel.unicode_safety import truncate

SUBJECT, KEEP, KEEP_OLDER, KEEP_NEWER = "memory", "keep", "keep_older", "keep_newer"
_WARNINGS = {
    Mark.INSTRUCTIONS: (stored_text("Instructs the bot"), stored_text("A memory should say what is, not what to do.")),
    Mark.RIGHTS: (
        stored_text("Claims rights"),
        stored_text("A memory gives nobody a right. Check it before you keep it."),
    ),
}
_CARD_SECONDS = 14 * 86_400


def ask_about_profile(fact: MemoryItem) -> None:
    """Ask whether a fact that was said in several conversations belongs to the profile; once."""
    question = _new(QuestionKind.PROFILE, fact, fact)
    if question is None:
        return
    text = CardText(
        intent=truncate(fact.content, 300),
        rationale=stored_text(
            "It was said {count:d} times. What's in the profile is kept even if it isn't used."
        ).format(count=len(fact.events)),
        consequence={KEEP: stored_text("The bot keeps it"), "decline": stored_text("It stays as it is")},
        facts=[Fact(EXACT_TEXT, fact.content)],
    )
    _ask(question, stored_text("Add this to the profile?"), {KEEP: stored_text("Add to profile")}, text)


def ask_which_is_right(one: MemoryItem, other: MemoryItem) -> None:
    """Ask which of two memories that disagree is right; once."""
    question = _new(QuestionKind.CONTRADICTION, one, other)
    if question is None:
        return
    text = CardText(
        intent=stored_text("Two memories disagree"),
        rationale=stored_text("Both are confirmed. The one that you don't keep is archived, and can be restored."),
        consequence={
            KEEP_OLDER: stored_text("The newer one is archived"),
            KEEP_NEWER: stored_text("The older one is archived"),
            "decline": stored_text("Both stay"),
        },
        facts=[
            Fact(stored_text("Older"), one.content),
            Fact(stored_text("Newer"), other.content),
            *_warnings(one, other),
        ],
    )
    options = {KEEP_OLDER: stored_text("Keep the older"), KEEP_NEWER: stored_text("Keep the newer")}
    _ask(question, stored_text("Which of these is right?"), options, text)


def withdraw_for_deleted(ids: list[UUID]) -> None:
    """Withdraw the open questions about memories that are being deleted."""
    about = MemoryQuestion.objects.filter(state=QuestionState.OPEN)
    for question in (about.filter(memory_id__in=ids) | about.filter(other_id__in=ids)).order_by("pk"):
        withdraw_cards_about(SUBJECT, question.pk, reason=Withdrawal.OUTDATED)


def dismiss_unanswered(card: Card) -> None:
    """Close the question whose card expired or was withdrawn."""
    MemoryQuestion.objects.filter(pk=card.subject_id, state=QuestionState.OPEN).update(
        state=QuestionState.DISMISSED, decided_at=now()
    )


def _ask(question: MemoryQuestion, title: str, options: Mapping[str, str], text: CardText) -> None:
    """Open the card of a question; `options` are the labels by value."""
    labelled = [{"label": label, "value": value} for value, label in options.items()]
    card = open_card(
        CardKind.DECISION,
        subject=CardSubject(SUBJECT, question.pk, requested_by="memory"),
        binding=Binding(ApprovalScope.SINGLE_STEP, {"question": title, "options": labelled}, reversible=True),
        text=text,
        seconds=_CARD_SECONDS,
    )
    MemoryQuestion.objects.filter(pk=question.pk).update(card_id=card.pk)


def _warnings(*rows: MemoryItem) -> list[Fact]:
    """What a person should know of these texts before they keep one."""
    marks = dict.fromkeys(mark for row in rows for mark in find_marks(row.content))
    return [Fact(*_WARNINGS[mark]) for mark in marks]


def _new(kind: QuestionKind, memory: MemoryItem, other: MemoryItem) -> MemoryQuestion | None:
    """The new question, or None if it was asked before."""
    row, created = MemoryQuestion.objects.get_or_create(
        tenant_id=current_tenant_id(),
        kind=kind,
        memory_id=memory.pk,
        other_id=other.pk,
        defaults={"created_at": now()},
    )
    return row if created else None
