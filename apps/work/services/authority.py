"""Find the approval under which an item may run: its own, or its goal's, project's or batch's (spec 5.2.1 step 0).

Always holds: the approval was spent for exactly this item, or for a project or batch that names this item by the hash
of its plan; and the row's customer is the one that the plan binds. Reads only. Called when an attempt begins.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from apps.approvals.enums import ApprovalScope
from apps.approvals.models import ApprovalToken
from apps.approvals.queries import get_use
from apps.approvals.tokens.payloads import approvable, batch_payload, call_payload
from apps.approvals.tokens.schemas import Approvable
from apps.approvals.tokens.services import check_token
from apps.work import project_rules, rules
from apps.work.enums import BatchStatus, WorkItemStatus, WorkItemType
from apps.work.models import Batch, WorkItem
from apps.work.queries import lines_of
from apps.work.services.standing_tasks import approvable_child
from kernel.errors import SilasError
from llm.calls import parse_calls


@dataclass(frozen=True)
class Authority:
    """`nonce` is unique to this approval for this item, so each call takes effect once; `token` is the signed nonce of
    the approval, which may be revoked while the item runs; `refusal` is set when there is no approval."""

    refusal: str = ""
    nonce: str = ""
    expires_at: datetime | None = None
    token: str = ""


def authority_of(item: WorkItem) -> Authority:
    """Return what lets the item run now. The enforcement point for "cannot execute without a verified approval"."""
    # The customer stands on the row, the plan's hash binds them: SQL could point a plan at another customer.
    if item.spec.domain != rules.domain_of(item.subject):
        return Authority("subject_mismatch")
    if item.approval_token is None:
        return Authority("no_token")
    # A body that does not parse would run no call, and pass for done.
    try:
        parse_calls(item.spec.body)
    except SilasError as unreadable:
        return Authority(unreadable.code)
    return _own(item, item.approval_token)


def _own(item: WorkItem, token: ApprovalToken) -> Authority:
    if item.is_part and token.work_item_id == str(item.pk):
        project = item.parent
        running = project is not None and project.status == WorkItemStatus.RUNNING
        return _check_token(token, bound_by(item, token)) if running else Authority("project_over")
    if item.batch is not None:
        return _of_batch(item, item.batch, token)
    if item.parent is not None and item.parent.type == WorkItemType.PROJECT:
        return _of_project(item, item.parent, token)
    return _check_token(token, bound_by(item, token))


def bound_by(item: WorkItem, token: ApprovalToken) -> Approvable:
    """Return what an approval of this scope binds for a single item: its plan, or the one call that a draft's card
    showed."""
    calls = item.spec.calls if token.scope == ApprovalScope.SINGLE_STEP else ()
    if len(calls) == 1:
        plan = {"work_item_id": str(item.pk), "plan_hash": item.spec.plan_hash}
        return approvable(ApprovalScope.SINGLE_STEP, call_payload(calls[0].tool, calls[0].args, **plan, step=1))
    if token.scope == ApprovalScope.STANDING and item.parent is not None:
        return approvable_child(item, item.parent)
    return item.spec.approvable()


def _of_project(item: WorkItem, project: WorkItem, token: ApprovalToken) -> Authority:
    """The project's approval, while the project runs, for a task whose plan it names."""
    if project.status != WorkItemStatus.RUNNING:
        return Authority("project_over")
    # By the hash of the plan, not by the parent: a task could be moved below an approved project with SQL.
    if project_rules.covered_tasks(project.spec).get(str(item.pk)) != item.spec.plan_hash:
        return Authority("not_covered")
    return _check_token(token, project.spec.approvable(), part=item)


def _of_batch(item: WorkItem, batch: Batch, token: ApprovalToken) -> Authority:
    """The batch's approval, while the batch runs, for an item whose plan it lists."""
    if batch.status != BatchStatus.RUNNING:
        return Authority("batch_over")
    ids = [line.item_id for line in lines_of(batch)]
    if item.spec.plan_hash not in ids:
        return Authority("not_covered")
    payload = batch_payload(goal_id=str(batch.goal_ref), action=batch.action, item_ids=ids)
    return _check_token(token, approvable(ApprovalScope.CONNECTION_ACT, payload), part=item)


def _check_token(token: ApprovalToken, subject: Approvable, *, part: WorkItem | None = None) -> Authority:
    """Check the token. `part`: one of several items under this approval, each with effects of its own."""
    verdict = check_token(token, subject)
    if not verdict.ok:
        return Authority(verdict.reason.value)
    # The nonce of the guard's calls: per use of the token, and per item where several share one approval.
    use = get_use(token.nonce, bound_hash=subject.plan_hash)
    nonce = f"{use.token_nonce}:{use.ordinal}"
    nonce = f"{nonce}:{part.pk.hex}" if part else nonce
    return Authority(nonce=nonce, expires_at=token.expires_at, token=token.nonce)
