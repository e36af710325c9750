"""What becomes of a plan that a model proposed? Refused, put before a person, or run under a standing yes.

The harness decides what is bound: ids, skills by content, the skills' own checks, the customer, the budget. Of the
model's plan only the calls, its prose and further checks remain, and every argument is checked (spec 5.1.2, 5.2.3).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID, uuid4

from apps.approvals.enums import ApprovalScope, CardKind, Risk
from apps.approvals.schemas import Fact
from apps.approvals.services import open_card
from apps.audit.enums import AuditEvent
from apps.audit.services import record
from apps.gates.enums import GateProvider, GateTrigger
from apps.gates.rules import escalation_for
from apps.gates.schemas import GateResult, GateSpec
from apps.gates.services import check_gates
from apps.guard.schemas import call_digest
from apps.skills import queries as skills
from apps.skills import rules as skill_rules
from apps.skills.schemas import ToolSpec
from apps.tenants.models import Deployment
from apps.work import plans, rules
from apps.work.budgets import Budget
from apps.work.enums import WorkItemType
from apps.work.jobs import checks_of
from apps.work.models import WorkItem
from apps.work.queries import active_goal
from apps.work.schemas import Proposal, WorkItemSpec
from apps.work.services.authorization import authorize_standing
from apps.work.services.items import announce, create_item
from apps.work.wording import WAITING
from kernel.errors import SilasError
from kernel.llm.calls import PlannedCall
from kernel.llm.enums import InteractionMode

_TITLE_CHARS = 200
_NOT_HERE = "that is not something I can do here"


@dataclass(frozen=True)
class Wanted:
    """One call of a plan with the tool it names."""

    call: PlannedCall
    tool: ToolSpec

    def say(self, template: str) -> str:
        return skill_rules.fill(template, self.call.args)


def propose(
    *,
    deployment: Deployment,
    session_id: UUID | None,
    plan_markdown: str,
    access: frozenset[str],
    subject: str,
    gates: Sequence[GateSpec],
    trace_id: str,
    requested_by: str = "visitor",
) -> Proposal:
    """Take a plan in. `access`: the tools of the visitor's level; `subject`: the verified customer's id, or "".

    Runs inside the caller's transaction, so only gates that decide from values are asked here; all of them, scripts
    included, are asked again when the call is made.
    """
    goal = active_goal(deployment)
    try:
        plan = plans.parse(plan_markdown)
        wanted = _wanted(plan, goal, access)
        asks = _gates_ask(wanted, gates, goal)
    except SilasError as refusal:
        record(AuditEvent.WORK_REFUSED, subject=f"session:{session_id}", data={"code": refusal.code})
        return Proposal("refused", reason=refusal.message, code=refusal.code)
    standing = None if asks else _standing_spec(plan, wanted, goal, subject)
    item = create_item(
        standing or _bound_spec(plan, wanted, subject),
        deployment_id=deployment.pk,
        session_id=session_id,
        trace_id=trace_id,
        subject=subject,
        requested_by=requested_by,
    )
    if standing is not None and goal is not None and _runs_at_once(item, goal):
        return Proposal("dispatched", item.pk)
    _ask_a_person(item, wanted, asks)
    return Proposal("card", item.pk)


def _wanted(plan: WorkItemSpec, goal: WorkItem | None, access: frozenset[str]) -> tuple[Wanted, ...]:
    """The plan's calls with their tools. Raises `SilasError` for anything that cannot be asked for here."""
    if plan.type != WorkItemType.TASK:
        raise SilasError("plan_type_not_allowed", _NOT_HERE)
    tools = {tool.name: tool for tool in (skills.tools_for(goal.spec.skills) if goal else ())}
    if not plan.calls:
        raise SilasError("plan_without_calls", "the plan does not say what to do")
    too_much = rules.excess(calls=len(plan.calls), checks=plan.verify, gates=plan.gates)
    if too_much:
        raise SilasError(too_much, _NOT_HERE)
    if len({call_digest(call.tool, call.args) for call in plan.calls}) < len(plan.calls):
        raise SilasError("plan_call_twice", "the plan asks for the same thing twice")
    for call in plan.calls:
        if call.tool not in tools or call.tool not in access:
            raise SilasError("tool_not_granted", _NOT_HERE, extra={"tool": call.tool})
        problem = skill_rules.argument_problem(tools[call.tool], call.args)
        if problem:
            raise SilasError("bad_arguments", f"something is missing or not right ({problem})")
    return tuple(Wanted(call, tools[call.tool]) for call in plan.calls)


def _gates_ask(wanted: Sequence[Wanted], gates: Sequence[GateSpec], goal: WorkItem | None) -> GateResult | None:
    """The gate that wants a person, if one does. Raises `SilasError("gate_blocked")` with the gate's own sentence."""
    from_values = [gate for gate in gates if gate.provider == GateProvider.PREDICATE]
    asks = None
    for each in wanted:
        context = {"tool_name": each.call.tool, "tool_args": dict(each.call.args)}
        report = check_gates(from_values, GateTrigger.ON_TOOL_CALL, context)
        for event, data in report.audit:
            record(AuditEvent(event), data=data)
        if report.blocked:
            raise SilasError("gate_blocked", _sentence(report.blocked, goal), extra={"gate": report.blocked.gate_name})
        if report.context["tool_args"] != each.call.args:
            raise SilasError("gate_blocked", "the values are outside of what is allowed")
        asks = asks or report.needs_approval
    return asks


def _sentence(blocked: GateResult, goal: WorkItem | None) -> str:
    """What the company wants said about this refusal, else what the gate found."""
    escalation, _ = escalation_for(blocked.on_block, goal.spec.escalation if goal else {})
    return escalation.message or blocked.reason


def _bound_spec(plan: WorkItemSpec, wanted: Sequence[Wanted], subject: str) -> WorkItemSpec:
    """The plan as the harness lets it stand."""
    own = checks_of([each.tool for each in wanted])
    return WorkItemSpec(
        id=str(uuid4()),
        type=WorkItemType.TASK,
        title=_intent(wanted),
        domain=_domain(subject),
        budget=_within_defaults(plan.budget),
        body=plan.body,
        interaction_mode=InteractionMode.CONFIRM_ONLY_WHEN_REQUIRED,
        verify=[*own, *(check for check in plan.verify if check not in own)],
        gates=plan.gates,
        skills=list(dict.fromkeys(each.tool.skill for each in wanted)),
        on_stuck=plan.on_stuck,
    )


def _standing_spec(
    plan: WorkItemSpec, wanted: Sequence[Wanted], goal: WorkItem | None, subject: str
) -> WorkItemSpec | None:
    """The task that the goal's own template would start for this call; None when it would not (spec 5.2.3 step 4).

    Nothing of the model's plan is in it but the values of the call.
    """
    if goal is None or goal.approval_token is None or len(wanted) != 1 or plan.gates or plan.verify:
        return None
    policy = goal.spec
    body = plans.fill(policy.failure_context, wanted[0].call) if policy.failure_context else None
    if body is None:
        return None
    own = [check for check in checks_of([wanted[0].tool]) if check not in policy.verify]
    return WorkItemSpec(
        id=str(uuid4()),
        type=WorkItemType.TASK,
        title=_intent(wanted),
        parent=policy.id,
        spawned_by=policy.id,
        domain=_domain(subject),
        budget=_within_defaults(policy.budget),
        body=body,
        verify=[*policy.verify, *own],
        gates=policy.gates,
        skills=[wanted[0].tool.skill],
        escalation=policy.escalation,
        on_failure=policy.on_failure,
    )


def _runs_at_once(item: WorkItem, goal: WorkItem) -> bool:
    verdict = authorize_standing(item, goal)
    return verdict is not None and verdict.ok


def _domain(subject: str) -> str | None:
    return f"business:customer/{subject}" if subject else None


def _within_defaults(asked: Budget) -> Budget:
    """A plan may ask for less than usual, never for more."""
    usual = Budget()
    return Budget(**{name: min(getattr(asked, name), getattr(usual, name)) for name in Budget.model_fields})


def _intent(wanted: Sequence[Wanted]) -> str:
    first = wanted[0].say(wanted[0].tool.intent) or wanted[0].tool.description
    first = first if len(first) <= _TITLE_CHARS else f"{first[:_TITLE_CHARS]}…"
    return first if len(wanted) == 1 else f"{first}, and {len(wanted) - 1} more"


def _ask_a_person(item: WorkItem, wanted: Sequence[Wanted], asks: GateResult | None) -> None:
    first, tools, spec = wanted[0], [each.tool for each in wanted], item.spec
    consequence = first.tool.consequence
    more = "" if len(wanted) == 1 else f", and {len(wanted) - 1} more"
    open_card(
        CardKind.PLAN,
        subject_kind="work_item",
        subject_id=item.pk,
        payload=spec.as_plan(),
        scope=ApprovalScope.FULL_PLAN,
        intent=item.title,
        rationale=_rationale(first, asks),
        consequence={
            "approve": (first.say(consequence.approve) if consequence else "Approve, do it") + more,
            "decline": first.say(consequence.decline) if consequence else "Decline, nothing changes",
        },
        reversible=all(tool.reversible for tool in tools),
        declared_risk=max((Risk(tool.risk) for tool in tools), key=list(Risk).index),
        affected="" if len(wanted) == 1 else f"{len(wanted)} actions",
        facts=_facts(wanted, item),
        details=_details(spec, asks),
        deployment_id=item.deployment_id,
        session_id=item.session_id,
    )
    announce(item, WAITING.format(title=item.title.rstrip(".")))


def _rationale(first: Wanted, asks: GateResult | None) -> str:
    said = first.say(first.tool.rationale) or "A customer asked for this."
    return f"{said} {asks.reason}." if asks and asks.reason else said


def _facts(wanted: Sequence[Wanted], item: WorkItem) -> list[Fact]:
    """What the skill says about its calls, then what it left unsaid of undo and proof."""
    said = [Fact(**fact) for each in wanted for fact in skills.card_facts(each.tool, each.call.args, item.subject)]
    labels = {fact.label for fact in said}
    ours = _assurances([each.tool for each in wanted], item.spec)
    return [*said, *(fact for fact in ours if fact.label not in labels)]


def _assurances(tools: Sequence[ToolSpec], spec: WorkItemSpec) -> list[Fact]:
    undo = "Yes, by a further change" if all(tool.reversible for tool in tools) else "No"
    count = len(spec.verify)
    proof = (
        f"{count} check{'s' if count != 1 else ''} outside the agent" if count else "nothing but the tool's own word"
    )
    return [Fact("Can be undone", text=undo), Fact("Proved by", text=proof)]


def _details(spec: WorkItemSpec, asks: GateResult | None) -> dict[str, object]:
    return {
        "plan": spec.body,
        "plan_hash": spec.plan_hash,
        "calls": [{"tool": call.tool, "args": call.args} for call in spec.calls],
        "checks": [check.model_dump(mode="json", exclude_none=True) for check in spec.verify],
        "gates": [gate.name for gate in spec.gates],
        "asked_by_gate": asks.gate_name if asks else "",
        "skills": spec.skills,
    }
