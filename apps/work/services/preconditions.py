"""An approval counts while the records are as its card showed them.

Always holds: a change since then means that nothing runs on that approval, and that one fresh card shows how things are
now. It is looked at when a person says yes, when work begins, and in the transaction that carries out its first change
(`skills.services.apply_changes`). Inside a scope.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from apps.approvals import queries as cards
from apps.approvals.enums import ApprovalScope, Withdrawal
from apps.approvals.models import ApprovalToken, Card
from apps.approvals.rules import FACE
from apps.approvals.services import withdraw_card
from apps.approvals.signals import Fresh
from apps.audit.enums import AuditEvent
from apps.audit.services import record
from apps.guard import services as guard
from apps.guard.enums import RunStatus, TerminalReason
from apps.skills import queries as skills
from apps.work import wording
from apps.work.enums import WorkItemStatus, WorkItemType
from apps.work.execution_models import LedgerEntry
from apps.work.locks import lock_item
from apps.work.models import WorkItem
from apps.work.queries import children_of
from apps.work.services import desk, screening
from apps.work.services.asking import WORK_ITEM, Wanted, ask_a_person
from apps.work.services.items import announce, move
from kernel.clock import now
from kernel.errors import SilasError

UNREADABLE = "card_mismatch"
CHANGED_SINCE = "The records have changed since this was last shown. This card shows them as they are now."


def keep_current(card: Card, fresh: Fresh) -> None:
    """Somebody says yes to a card of ours: where what it shows has changed, another one takes its place."""
    if card.subject_kind != WORK_ITEM:
        return
    item = lock_item(card.subject_id)
    if not skills.have_changed(card.reads, item.subject):
        return
    withdraw_card(card.pk, reason=Withdrawal.REPLACED)
    fresh.card = _ask_again(item, card)


def expected_of(item: WorkItem) -> Sequence[Mapping[str, Any]]:
    """The records on whose state the item's approval rests, while nothing of it has taken effect; none afterwards, and
    none for parts of a project or batch, which a person decided as one. Raises `SilasError("card_mismatch")` where no
    card shows what was signed."""
    token = item.approval_token
    if token is None or item.is_part or item.batch_id or token.scope != ApprovalScope.FULL_PLAN:
        return ()
    if FACE not in token.conditions or _has_begun(item):
        return ()
    reads: list[dict[str, Any]] = _card_of(item, token).reads
    return reads


def _card_of(item: WorkItem, token: ApprovalToken) -> Card:
    found = cards.approved_card(WORK_ITEM, item.pk, str(token.conditions[FACE]))
    if found is None:
        raise SilasError(UNREADABLE, "The card that was approved does not say that any more.", status=409)
    return found


def _has_begun(item: WorkItem) -> bool:
    return bool(LedgerEntry.objects.filter(attempt__work_item=item, success=True).exists())


def is_outdated(item: WorkItem) -> bool:
    """Whether the records have changed since a person approved the item. Raises what `expected_of` raises."""
    return skills.have_changed(expected_of(item), item.subject)


def give_back(item: WorkItem) -> None:
    """The approval is not used: the locked item waits for a person again, whom a web process asks."""
    if item.status == WorkItemStatus.RUNNING:
        move(item, WorkItemStatus.PAUSED)
    if item.run_id is not None:
        guard.close_run(item.run_id, status=RunStatus.FAILED, reason=TerminalReason.APPROVAL_MISSING)
    WorkItem.objects.filter(pk=item.pk).update(approval_token=None, run_id=None, updated_at=now())
    item.approval_token = item.run_id = None
    if item.status == WorkItemStatus.PAUSED:
        move(item, WorkItemStatus.PENDING)
    record(AuditEvent.WORK_NOT_APPROVED, subject=f"work:{item.pk}", data={"reason": "record_changed"})
    desk.ask_again(item)


def ask_again(item: WorkItem) -> None:
    """The fresh card about an item whose records changed after it was approved. Web processes only."""
    last = cards.latest_about(WORK_ITEM, item.pk)
    if last is not None and item.status == WorkItemStatus.PENDING and item.approval_token_id is None:
        _ask_again(item, last)


def _ask_again(item: WorkItem, old: Card) -> Card:
    rationale = f"{CHANGED_SINCE} {old.rationale.removeprefix(CHANGED_SINCE).strip()}"
    announce(item, wording.CHANGED.format(title=item.title.rstrip(".")))
    return ask_a_person(item, _wanted_of(item), None, instead_of=old, rationale=rationale)


def _wanted_of(item: WorkItem) -> Sequence[Wanted]:
    specs = [task.spec for task in children_of(item)] if item.type == WorkItemType.PROJECT else [item.spec]
    return [each for spec in specs for each in screening.wanted_of(spec.calls, screening.tools_in(spec.skills))]
