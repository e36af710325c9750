"""Adopt and install goals, and request their standing approvals.

Without a person's approval a goal grants nothing: its levels and escalations may be read, its template starts nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from uuid import UUID, uuid4

from apps.approvals.cards.schemas import Binding, CardSubject, CardText, Fact
from apps.approvals.cards.services import open_card
from apps.approvals.enums import ApprovalScope, CardKind, Risk
from apps.approvals.models import ApprovalToken, Card
from apps.gates.allowance import MOST_EVALUATIONS
from apps.gates.queries import active_gates, count_gates_per_turn
from apps.gates.signals import ExtraGates
from apps.gates.validation import require_valid
from apps.skills import queries as skills
from apps.skills.schemas import ToolSpec
from apps.tenants.models import Deployment
from apps.tenants.services import change_deployment
from apps.work import goal_rules, goal_templates, plans
from apps.work.enums import WorkItemStatus, WorkItemType, WorkReason
from apps.work.models import WorkItem
from apps.work.queries import active_goal, active_goal_spec
from apps.work.schemas import WorkItemSpec
from apps.work.services import execution_facts, goal_cycles, screening
from apps.work.services.items import create_item, move
from kernel import tracing
from kernel.error_codes import ErrorCode
from kernel.errors import SilasError
from kernel.language import gettext
from kernel.stored_texts import stored_text


def adopt_goal(plan_markdown: str, *, deployment_id: UUID, requested_by: str) -> WorkItem:
    """Store a goal written by staff, its skills pinned by content; it starts nothing without a standing approval.
    Raises `SilasError` for a plan that is no goal, and 422 `gate_invalid` for a gate that cannot work."""
    spec = plans.parse(plan_markdown)
    if spec.type != WorkItemType.GOAL:
        raise SilasError(ErrorCode.PLAN_NOT_A_GOAL)
    if spec.failure_context:
        goal_templates.template_call(spec.failure_context)
    for gate in spec.gates:
        require_valid(gate)
    goal_cycles.require_schedule(spec)
    # By content: a skill that is updated later must not change what an approval of the goal covers.
    pinned = list(skills.pin(spec.skills))
    fresh = WorkItemSpec.model_validate({**spec.model_dump(), "id": str(uuid4()), "skills": pinned})
    item = create_item(
        fresh,
        deployment_id=deployment_id,
        session_id=None,
        trace_id=tracing.trace_for_message(),
        requested_by=requested_by,
    )
    move(item, WorkItemStatus.HEALTHY)
    goal_cycles.start_schedule(item)
    return item


@dataclass(frozen=True)
class InstalledGoal:
    """The goal that governs a deployment now; `changed` is False if the same one was installed before."""

    goal: WorkItem
    changed: bool


def install_goal(plan_markdown: str, *, deployment: Deployment, requested_by: str) -> InstalledGoal:
    """Let the goal of this file govern the deployment's conversations from the next turn on; the previous goal and its
    standing approval end. Idempotent.

    Raises the `SilasError`s of `goal_rules.read_goal`, goal_too_many_gates, goal_tool_unknown, skill_missing,
    bad_template and bad_schedule.
    """
    # Imports for one deployment are serialized: the second one sees, and ends, the goal of the first. Nothing is locked
    # before it.
    locked = Deployment.objects.select_for_update(of=("self",), no_key=True)
    deployment.active_goal_id = locked.values_list("active_goal_id", flat=True).get(pk=deployment.pk)
    parsed = check_goal(plan_markdown, deployment=deployment)
    before = active_goal(deployment)
    pinned = parsed.spec.model_copy(update={"skills": list(skills.pin(parsed.spec.skills))})
    if before is not None and goal_rules.is_same_policy(before.spec, pinned):
        return InstalledGoal(before, changed=False)
    goal = adopt_goal(plan_markdown, deployment_id=deployment.pk, requested_by=requested_by)
    change_deployment(deployment, actor=requested_by, active_goal_id=goal.pk)
    if before is not None and before.status != WorkItemStatus.BLOCKED:
        move(before, WorkItemStatus.BLOCKED, reason=WorkReason.REPLANNED)
    return InstalledGoal(goal, changed=True)


def copy_goal(spec: WorkItemSpec, *, deployment: Deployment, requested_by: str) -> WorkItem:
    """Let a copy of this goal, which was checked when it was installed elsewhere, govern the deployment. Its skills
    stay pinned as they are; it starts nothing by itself."""
    fresh = spec.model_copy(update={"id": str(uuid4()), "parent": None, "follow_up_of": None})
    goal = create_item(
        fresh,
        deployment_id=deployment.pk,
        session_id=None,
        trace_id=tracing.trace_for_message(),
        requested_by=requested_by,
    )
    move(goal, WorkItemStatus.HEALTHY)
    change_deployment(deployment, actor=requested_by, active_goal_id=goal.pk)
    return goal


def check_goal(plan_markdown: str, *, deployment: Deployment) -> plans.ParsedPlan:
    """Parse and validate the goal of a file for this deployment; raises what `install_goal` raises, and changes
    nothing."""
    rows = active_gates(deployment.pk).value
    parsed = goal_rules.read_goal(plan_markdown, other_gates={gate.name: gate.on for gate in rows})
    try:
        tools = screening.tools_in(parsed.spec.skills)
    except SilasError as missing:
        plans.raise_plan_error(missing.code, missing.message, parsed.line(["skills"]))
    needed = count_gates_per_turn((*rows, *parsed.spec.gates), lookup_tools(tools.values()))
    if needed > MOST_EVALUATIONS:
        most = f"a turn asks {MOST_EVALUATIONS} at most."
        problem = f"with these a message, its answer and a look-up need {needed} gates; {most}"
        plans.raise_plan_error(ErrorCode.GOAL_TOO_MANY_GATES, problem, parsed.line(["gates"]))
    goal_rules.require_tools(parsed, tools)
    return parsed


def lookup_tools(tools: Iterable[ToolSpec]) -> frozenset[str]:
    """Return the tools that a turn may call itself: acting tools are planned, and need approval when they run."""
    return frozenset(tool.name for tool in tools if not tool.acting) | {goal_rules.KNOWLEDGE_TOOL}


def add_gates(deployment_id: UUID, extra: ExtraGates) -> None:
    """Add the gates and lookup tools of the deployment's goal to the count of gates."""
    deployment = Deployment.objects.only("active_goal_id").get(pk=deployment_id)
    spec = active_goal_spec(deployment).value
    extra.add([], {goal_rules.KNOWLEDGE_TOOL})
    if spec is not None:
        extra.add(spec.gates, ())
        with suppress(SilasError):
            extra.add((), lookup_tools(skills.tools_for(spec.skills)))


def request_standing_approval(goal: WorkItem, *, uses: int, days: int, rationale: str) -> Card:
    """Ask a person to let the goal's template run `uses` times within `days` without asking again."""
    spec = goal.spec
    call = goal_templates.template_call(spec.failure_context or "")
    tool = screening.tools_in(spec.skills)[call.tool]
    if tool.executor:
        raise SilasError(ErrorCode.BAD_TEMPLATE, gettext("Code is approved each time it runs."))
    return open_card(
        CardKind.STANDING,
        subject=CardSubject("work_item", goal.pk, goal.deployment_id, requested_by=goal.requested_by),
        binding=Binding(
            ApprovalScope.STANDING,
            spec.as_plan(),
            reversible=not execution_facts.raises_risk(tool),
            declared_risk=Risk(tool.risk),
            max_executions=uses,
            token_seconds=days * 86_400,
        ),
        text=CardText(
            intent=stored_text("Let “{goal}” run {tool} without asking, up to {count:d} times in {days:d} days").format(
                goal=goal.title, tool=call.tool, count=uses, days=days
            ),
            rationale=rationale,
            consequence={
                "approve": stored_text("Allow up to {count:d} times").format(count=uses),
                "decline": stored_text("Ask every time"),
            },
            facts=[
                Fact(
                    stored_text("Each time"), text=stored_text("the same gates and checks as with a person's approval")
                ),
                *execution_facts.execution_facts(tool),
            ],
            details={"body": spec.failure_context, "checks": [check.model_dump() for check in spec.verify]},
        ),
    )


def attach_standing_approval(goal: WorkItem, token: ApprovalToken | None) -> None:
    """Attach the standing approval to the goal; each child spends a use of it. A rejection changes nothing."""
    if token is None:
        return
    WorkItem.objects.filter(pk=goal.pk).update(approval_token=token)
    goal.approval_token = token
