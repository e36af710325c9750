"""Ask the customer something before a card is decided, in the conversation that the card is about.

The question is a message of the team, like every reply, but the bot keeps the conversation: it answers what the
customer writes next as usual, and the card shows that message to those who decide it.
"""

from __future__ import annotations

from datetime import timedelta
from uuid import UUID

from apps.approvals import locks
from apps.approvals.cards import questions
from apps.approvals.cards.lifecycle import require_approver
from apps.approvals.models import CardQuestion
from apps.inbox.handoff import append_reply, require_answering, writable
from apps.inbox.staff import Staff, member_of
from apps.sessions.enums import Owner
from apps.sessions.locks import lock_session
from apps.sessions.models import ChatSession
from kernel.error_codes import ErrorCode
from kernel.errors import NotFound, SilasError


def ask_customer(card_id: UUID, by: Staff, text: str, *, wait: timedelta = questions.LONGEST_WAIT) -> CardQuestion:
    """Put the question into the card's conversation and park the card until the customer writes, or for `wait`.

    Raises `SilasError`: 403 `approver_required` for a member who may not decide cards, 400 `invalid_text`, 409 what
    `questions.require_question_possible` raises and `owned_by_other` while a colleague answers there; `NotFound`. A
    program's rights are checked where it comes in. Lock order: card, then the conversation.
    """
    member = member_of(by)
    if member is not None:
        require_approver(member)
    text = writable(text)
    card = locks.lock_card(card_id)
    questions.require_question_possible(card)
    session = _lock_conversation(card.session_id)
    if session.owner == Owner.HUMAN:
        require_answering(session, by)
    entry = append_reply(session, by, text)
    return questions.park_card(card, asker=member, actor=by.actor, session_id=session.pk, seq=entry.seq, wait=wait)


def _lock_conversation(session_id: UUID | None) -> ChatSession:
    """Raise 409 `card_takes_no_question` for a card whose conversation no longer exists."""
    try:
        if session_id is not None:
            return lock_session(session_id)
    except NotFound:
        pass
    raise SilasError(ErrorCode.CARD_TAKES_NO_QUESTION)
