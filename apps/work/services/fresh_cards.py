"""Replace the card of work whose records changed after the card was shown. In a process that may open cards, inside a
scope.

Always holds: the fresh card shows the records as they are now, at no lower risk than the card before.
"""

from __future__ import annotations

from apps.approvals import queries as cards
from apps.approvals.cards.lifecycle import withdraw_card
from apps.approvals.enums import CardKind, Withdrawal
from apps.approvals.models import Card
from apps.skills import queries as skills
from apps.work import visitor_messages
from apps.work.enums import WorkItemStatus
from apps.work.locks import lock_item
from apps.work.models import WorkItem
from apps.work.services import drafts
from apps.work.services.approval_requests import WORK_ITEM, request_approval
from apps.work.services.edits import calls_of, changes_of
from apps.work.services.items import announce
from kernel.stored_texts import stored_text

CHANGED_SINCE = stored_text("The records have changed since this was last shown. This card shows them as they are now.")


def replace_outdated_card(card: Card) -> Card | None:
    """Replace a card about one item at the moment of its approval, if what it shows has changed."""
    item = lock_item(card.subject_id)
    if not skills.have_changed(card.reads, item.subject):
        return None
    withdraw_card(card.pk, reason=Withdrawal.REPLACED)
    return _open(item, card)


def open_fresh_card(item: WorkItem) -> None:
    """Open the fresh card about an item whose approval was not used."""
    # It may have ended, or been approved, since this was enqueued.
    if item.status == WorkItemStatus.PENDING and item.approval_token_id is None:
        _open(item, cards.latest_card_about(WORK_ITEM, item.pk))


def fresh_rationale(rationale: str) -> str:
    """Put the notice about changed records before the old card's reasons."""
    return f"{CHANGED_SINCE} {rationale.removeprefix(CHANGED_SINCE).strip()}".strip()


def _open(item: WorkItem, old: Card | None) -> Card:
    """`old`: None for a part of a batch or project, which had no card of its own."""
    changes = changes_of(item) if item.session_id else ()
    announce(item, visitor_messages.about(visitor_messages.CHANGED, item.title), changes=changes)
    calls, rationale = calls_of(item), fresh_rationale(old.rationale if old else "")
    if old is not None and old.kind == CardKind.DRAFT_REVIEW:
        return drafts.reopen_draft_card(item, calls[0], old, rationale=rationale)
    return request_approval(item, calls, None, instead_of=old, rationale=rationale)
