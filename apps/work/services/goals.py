"""How does a goal become a standing policy? It is proposed like anything else; its yes is standing and spent per child.

Without a person's yes a goal grants nothing: its levels and escalations may be read, its template starts nothing.
"""

from __future__ import annotations

from uuid import UUID, uuid4

from apps.approvals.enums import ApprovalScope, CardKind
from apps.approvals.models import ApprovalToken, Card
from apps.approvals.schemas import Fact
from apps.approvals.services import open_card
from apps.skills import queries as skills
from apps.work import plans
from apps.work.enums import WorkItemStatus, WorkItemType
from apps.work.models import WorkItem
from apps.work.schemas import WorkItemSpec
from apps.work.services.items import create_item, move
from kernel.errors import SilasError


def adopt_goal(plan_markdown: str, *, deployment_id: UUID, requested_by: str) -> WorkItem:
    """Store an always-on goal written by staff, its skills pinned by content; it starts nothing by itself."""
    spec = plans.parse(plan_markdown)
    if spec.type != WorkItemType.GOAL:
        raise SilasError("plan_not_a_goal", "Only a goal can be adopted.")
    if spec.failure_context:
        plans.template_call(spec.failure_context)
    pinned = list(skills.pinned(spec.skills))
    fresh = WorkItemSpec.model_validate({**spec.model_dump(), "id": str(uuid4()), "skills": pinned})
    item = create_item(
        fresh, deployment_id=deployment_id, session_id=None, trace_id=str(uuid4()), requested_by=requested_by
    )
    move(item, WorkItemStatus.HEALTHY)
    return item


def ask_for_standing(goal: WorkItem, *, uses: int, days: int, rationale: str) -> Card:
    """Ask a person to let the goal's template run `uses` times within `days` without asking again."""
    spec = goal.spec
    call = plans.template_call(spec.failure_context or "")
    return open_card(
        CardKind.STANDING,
        subject_kind="work_item",
        subject_id=goal.pk,
        payload=spec.as_plan(),
        scope=ApprovalScope.STANDING,
        intent=f"Let “{goal.title}” run {call.tool} without asking, up to {uses} times in {days} days",
        rationale=rationale,
        consequence={"approve": f"Allow up to {uses} times", "decline": "Keep asking each time"},
        reversible=True,
        facts=[Fact("Each time", text="the same gates and checks as with a person's yes")],
        details={"body": spec.failure_context, "checks": [check.model_dump() for check in spec.verify]},
        deployment_id=goal.deployment_id,
        max_executions=uses,
        token_seconds=days * 86_400,
    )


def settle_standing(goal: WorkItem, token: ApprovalToken | None) -> None:
    """After a yes the goal carries its standing approval, and each child spends a use of it. A no changes nothing."""
    if token is None:
        return
    WorkItem.objects.filter(pk=goal.pk).update(approval_token=token)
    goal.approval_token = token
