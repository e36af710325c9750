"""Park a card while the customer answers a question about it.

A parked card is out of the queue and may be decided all the same. The wait ends when the customer writes, which changes
the question alone and locks no card, or when its time is up, which nothing has to notice. Either way those who may
decide the card are alerted as of a new one (`cards.alerts`). What an approval binds never changes: only the deadline of
the card moves, by as much as the wait. `apps.inbox.card_questions` puts the words into the conversation. Lock order:
card, conversation, question.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from uuid import UUID

from django.db.models import QuerySet

from apps.approvals import queries, signals
from apps.approvals.cards.lifecycle import record_card_event, require_open
from apps.approvals.enums import CardKind
from apps.approvals.models import OPEN_STATUSES, Card, CardQuestion
from apps.audit.enums import AuditEvent
from apps.bus import services as bus
from apps.bus.enums import Kind
from apps.tenants.models import User
from kernel.clock import now
from kernel.error_codes import ErrorCode
from kernel.errors import SilasError
from kernel.language import gettext
from kernel.tenancy import Read, built_once

LONGEST_WAIT = timedelta(days=1)
# So many questions may be asked about one card: it does not stay open for ever.
MOST_QUESTIONS = 3


def takes_question(card: Card) -> bool:
    """True for a card about a conversation. Not for one of a gate, and not for one that only offers to undo what was
    done."""
    return card.session_id is not None and card.kind != CardKind.GATE and not card.of_kind.is_offered


def require_question_possible(card: Card) -> None:
    """Raise `SilasError` 409 unless the customer may be asked about this locked card now: `card_decided`,
    `card_expired`, `card_withdrawn`; `card_takes_no_question`; `question_waiting`; `too_many_questions`."""
    require_open(card)
    if not takes_question(card):
        raise SilasError(ErrorCode.CARD_TAKES_NO_QUESTION)
    asked = queries.questions_about(card)
    if any(question.is_waiting for question in asked):
        raise SilasError(ErrorCode.QUESTION_WAITING)
    if len(asked) >= MOST_QUESTIONS:
        message = gettext("The customer was asked {number} times about this card. Decide it, or take over.")
        raise SilasError(ErrorCode.TOO_MANY_QUESTIONS, message.format(number=len(asked)))


def park_card(
    card: Card, *, asker: User | None, actor: str, session_id: UUID, seq: int, wait: timedelta = LONGEST_WAIT
) -> CardQuestion:
    """Let a locked card wait for the answer to entry `seq` of its conversation, which the caller has locked as well and
    has just written there. `require_question_possible` must have passed."""
    moment, wait = now(), min(wait, LONGEST_WAIT)
    # The time of an earlier question is up, and the customer never wrote.
    CardQuestion.objects.filter(card=card, ended_at=None).update(ended_at=moment)
    question: CardQuestion = CardQuestion.objects.create(
        card=card, asker=asker, session_id=session_id, seq=seq, asked_at=moment, waits_until=moment + wait
    )
    card.expires_at += wait
    card.save(update_fields=["expires_at"])
    _alert(card.pk, f"wait{seq}", due_at=question.waits_until)
    record_card_event(AuditEvent.CARD_QUESTION_ASKED, card, actor=actor, session=str(session_id), seq=seq)
    signals.question_changed(card.pk)
    return question


def waiting_for(session_id: UUID, *, answer_seq: int) -> Read[list[CardQuestion]]:
    """The questions of this locked conversation that entry `answer_seq` answers."""
    return _waiting.rows(session_id, answer_seq)


def end_waits(waiting: Iterable[CardQuestion], *, answer_seq: int) -> None:
    """The customer wrote entry `answer_seq`: what was `waiting_for` it waits no longer."""
    # No card is locked here: the customer's message must not wait for a person who is deciding it. What else ends a
    # wait locks the conversation too, so that these are still waiting.
    for question in waiting:
        CardQuestion.objects.filter(pk=question.pk).update(ended_at=now(), answer_seq=answer_seq)
        if question.waits_until > now():
            _alert(question.card_id, f"answer{answer_seq}")
            signals.card_returned(question.card_id, answer_seq)
        signals.question_changed(question.card_id)


@built_once
def _waiting(session_id: UUID, answer_seq: int) -> QuerySet[CardQuestion]:
    return CardQuestion.objects.filter(
        session_id=session_id, ended_at=None, seq__lt=answer_seq, card__status__in=OPEN_STATUSES
    )


def _alert(card_id: UUID, cause: str, *, due_at: datetime | None = None) -> None:
    """Enqueue the alerts about a card that is back. Each cause is a scope of its own on the bus, because a job waits
    behind an earlier one of its scope, and the one of the new card may wait for a day until its email is due."""
    bus.enqueue(Kind.CARD_ALERT, scope_id=f"{cause}:{card_id}", due_at=due_at)
