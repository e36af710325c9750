"""Act on a person's decision: verify, attach and dispatch an approval; end the item on a rejection.

The only place where an approval token is spent (spec 5.1.2 step 6, 5.2.3 step 4). The message to the executors is
written in the same transaction; the wake-up of a worker waits for the commit and may be lost without harm.
"""

from __future__ import annotations

from apps.approvals.enums import DeclineReason
from apps.approvals.models import ApprovalToken
from apps.approvals.tokens.schemas import TokenVerdict
from apps.approvals.tokens.services import verify_token
from apps.skills import queries as skills
from apps.work import visitor_messages
from apps.work.enums import WorkItemStatus, WorkItemType, WorkReason
from apps.work.models import WorkItem
from apps.work.services import projects
from apps.work.services.authority import bound_by
from apps.work.services.execution_queue import enqueue
from apps.work.services.items import announce, move
from apps.work.services.standing_tasks import approvable_child


def authorize(item: WorkItem, token: ApprovalToken) -> TokenVerdict:
    """Spend the token for exactly this item; dispatch it, or end it when the token is not valid."""
    verdict = verify_token(token, bound_by(item, token))
    if verdict.ok:
        announce(item, visitor_messages.about(visitor_messages.APPROVED, item.title))
        if item.type == WorkItemType.PROJECT:
            projects.start(item, token)
        else:
            attach_and_enqueue(item, token)
    else:
        # The decision stays; what it does not cover does not run.
        move(item, WorkItemStatus.BLOCKED, reason=WorkReason.NOT_APPROVED, last_error=verdict.reason.value)
    return verdict


def authorize_standing(item: WorkItem, goal: WorkItem) -> TokenVerdict | None:
    """Spend one use of the goal's standing approval for `item`; None when the goal has none, or when the item runs
    code, which a person reads each time. Never ends the item: what does not fit is put before a person."""
    # Code differs each time, so that no approval given in advance can cover it.
    if goal.approval_token is None or runs_code(item):
        return None
    verdict = verify_token(goal.approval_token, goal.spec.approvable(), approvable_child(item, goal))
    if verdict.ok:
        attach_and_enqueue(item, goal.approval_token)
    return verdict


def runs_code(item: WorkItem) -> bool:
    """Whether a call of the item is one of an executor (spec 9.2)."""
    called = {call.tool for call in item.spec.calls}
    return any(tool.executor for tool in skills.tools_in_use(item.spec.skills) if tool.name in called)


def attach_and_enqueue(item: WorkItem, token: ApprovalToken) -> None:
    """Attach the verified token and queue the item for the executors."""
    WorkItem.objects.filter(pk=item.pk).update(approval_token=token)
    item.approval_token = token
    enqueue(item)


def reject(item: WorkItem, reason: WorkReason, *, because: DeclineReason | None = None) -> None:
    """End an item that was not approved; nothing runs. `because`: why a colleague declined it, which the visitor is
    told."""
    told = visitor_messages.DECLINED_BECAUSE[because] if because else ""
    move(item, WorkItemStatus.BLOCKED, reason=reason, result=told)
