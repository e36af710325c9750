"""Ask again about work whose records changed after its card was shown. Web processes only, inside a scope.

Always holds: the fresh card shows the records as they are now, at no lower a risk than the card before.
"""

from __future__ import annotations

from collections.abc import Sequence

from apps.approvals import queries as cards
from apps.approvals.enums import CardKind, Withdrawal
from apps.approvals.models import Card
from apps.approvals.services import withdraw_card
from apps.approvals.signals import Fresh
from apps.skills import queries as skills
from apps.work import visitor_messages
from apps.work.enums import WorkItemStatus, WorkItemType
from apps.work.locks import lock_item
from apps.work.models import WorkItem
from apps.work.queries import children_of
from apps.work.services import drafts, screening
from apps.work.services.approval_requests import WORK_ITEM, RequestedCall, request_approval
from apps.work.services.items import announce

CHANGED_SINCE = "The records have changed since this was last shown. This card shows them as they are now."


def replace_outdated_card(card: Card, fresh: Fresh) -> None:
    """A person approves a card about one item: where what it shows has changed, another one takes its place."""
    if card.subject_kind != WORK_ITEM:
        return
    item = lock_item(card.subject_id)
    if not skills.have_changed(card.reads, item.subject):
        return
    withdraw_card(card.pk, reason=Withdrawal.REPLACED)
    fresh.card = _ask(item, card)


def open_fresh_card(item: WorkItem) -> None:
    """The fresh card about an item whose approval was not used."""
    if item.status == WorkItemStatus.PENDING and item.approval_token_id is None:
        _ask(item, cards.latest_about(WORK_ITEM, item.pk))


def fresh_rationale(rationale: str) -> str:
    """The reasons of the card before, after what is new."""
    return f"{CHANGED_SINCE} {rationale.removeprefix(CHANGED_SINCE).strip()}".strip()


def _ask(item: WorkItem, old: Card | None) -> Card:
    """`old`: None for a part of a batch or project, which no card was about before."""
    announce(item, visitor_messages.CHANGED.format(title=item.title.rstrip(".")))
    wanted, rationale = _wanted_of(item), fresh_rationale(old.rationale if old else "")
    if old is not None and old.kind == CardKind.DRAFT_REVIEW:
        return drafts.reopen_draft_card(item, wanted[0], old, rationale=rationale)
    return request_approval(item, wanted, None, instead_of=old, rationale=rationale)


def _wanted_of(item: WorkItem) -> Sequence[RequestedCall]:
    specs = [task.spec for task in children_of(item)] if item.type == WorkItemType.PROJECT else [item.spec]
    return [each for spec in specs for each in screening.resolve_calls(spec.calls, screening.tools_in(spec.skills))]
