"""What happens when a person has decided? A yes is verified, attached and dispatched at once; a no ends the item.

The only place where an approval token is spent (spec 5.1.2 step 6, 5.2.3 step 4). The message to the executor's queue
is written in the same transaction; the wake-up of a worker waits for the commit and may be lost without harm.
"""

from __future__ import annotations

from apps.approvals import services as approvals
from apps.approvals.models import ApprovalToken
from apps.approvals.schemas import Verdict
from apps.bus import services as bus
from apps.bus.enums import Kind, Queue, Sender
from apps.work import wakeup
from apps.work.enums import WorkItemStatus, WorkReason
from apps.work.models import WorkItem
from apps.work.services.items import announce, move
from apps.work.wording import APPROVED
from kernel.taint import Taint
from kernel.tenancy import current_tenant_id


def authorize(item: WorkItem, token: ApprovalToken) -> Verdict:
    """Spend the token for exactly this item; dispatch it, or end it when the token does not hold."""
    verdict = approvals.verify(token, item.spec.approvable())
    if verdict.ok:
        dispatch(item, token)
        announce(item, APPROVED.format(title=item.title.rstrip(".")))
    else:
        move(item, WorkItemStatus.BLOCKED, reason=WorkReason.NOT_APPROVED, last_error=verdict.reason.value)
    return verdict


def authorize_standing(item: WorkItem, goal: WorkItem) -> Verdict | None:
    """Spend one use of the goal's standing approval for `item`; None when the goal has none. Never ends the item:
    what does not fit is put before a person."""
    if goal.approval_token is None:
        return None
    spec, parent = item.spec, goal.spec
    verdict = approvals.verify(goal.approval_token, parent.approvable(), spec.approvable(parent))
    if verdict.ok:
        dispatch(item, goal.approval_token)
    return verdict


def dispatch(item: WorkItem, token: ApprovalToken) -> None:
    """Attach the verified token and owe the item to the executor, once."""
    WorkItem.objects.filter(pk=item.pk).update(approval_token=token)
    item.approval_token = token
    bus.enqueue(
        Queue.EXECUTOR,
        kind=Kind.EXECUTION_REQUEST,
        scope_id=item.session_id or item.pk,
        sender=Sender.RUNTIME,
        task_id=item.pk,
        trace_id=item.trace_id,
        message_id=f"execute:{item.pk}",
        taint=Taint.AUTH,
    )
    wakeup.after_commit(current_tenant_id())


def refuse(item: WorkItem, reason: WorkReason) -> None:
    """Nobody said yes: nothing runs."""
    move(item, WorkItemStatus.BLOCKED, reason=reason)
