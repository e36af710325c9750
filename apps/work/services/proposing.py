"""What becomes of a plan that a model proposed? Refused, put before a person, or run under a standing yes.

The harness decides what is bound: ids, skills by content, the skills' own checks, the customer, the budget. Of the
model's plan only the calls and its prose remain, and every argument is checked (spec 5.1.2, 5.2.3; ADR 0013).
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from uuid import UUID, uuid4

from apps.audit.enums import AuditEvent
from apps.audit.services import record
from apps.gates.enums import GateProvider, GateTrigger
from apps.gates.rules import escalation_for
from apps.gates.schemas import GateResult, GateSpec
from apps.gates.services import check_gates
from apps.guard.schemas import call_digest
from apps.skills import queries as skills
from apps.skills import rules as skill_rules
from apps.tenants.models import Deployment
from apps.work import plans, rules
from apps.work.budgets import Budget
from apps.work.enums import WorkItemType
from apps.work.jobs import checks_of
from apps.work.locks import lock_customer
from apps.work.models import WorkItem
from apps.work.queries import active_goal, open_items_of, standing_items_of
from apps.work.schemas import Proposal, WorkItemSpec
from apps.work.services.asking import Wanted, ask_a_person, intent_of
from apps.work.services.authorization import authorize_standing
from apps.work.services.items import create_item
from kernel.clock import now
from kernel.errors import SilasError
from kernel.llm.calls import PlannedCall
from kernel.llm.enums import InteractionMode

_NOT_HERE = "that is not something I can do here"
_BROKEN = "I could not prepare it properly"
_HIDDEN = "it holds characters that cannot be seen; please write it again by hand"


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
        plan = _parsed(plan_markdown)
        wanted = _wanted(plan, goal, access)
        asks = _gates_ask(wanted, gates, goal)
        _require_room(wanted, subject=subject, session_id=session_id)
    except SilasError as refusal:
        record(AuditEvent.WORK_REFUSED, subject=f"session:{session_id}", data={"code": refusal.code})
        return Proposal("refused", reason=refusal.message, code=refusal.code)
    standing = None if asks else _standing_spec(wanted, goal, subject)
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
    ask_a_person(item, wanted, asks)
    return Proposal("card", item.pk)


def _parsed(plan_markdown: str) -> WorkItemSpec:
    """Raises `SilasError` with the reader's code; its words may repeat the model's and are not for the visitor."""
    try:
        return plans.parse(plan_markdown)
    except SilasError as refusal:
        raise SilasError(refusal.code, _BROKEN) from refusal


def _wanted(plan: WorkItemSpec, goal: WorkItem | None, access: frozenset[str]) -> tuple[Wanted, ...]:
    """The plan's calls with their tools. Raises `SilasError` for anything that cannot be asked for here."""
    if plan.type != WorkItemType.TASK or plan.gates:
        raise SilasError("plan_gate_not_allowed" if plan.gates else "plan_type_not_allowed", _NOT_HERE)
    tools = {tool.name: tool for tool in (skills.tools_for(goal.spec.skills) if goal else ())}
    if not plan.calls:
        raise SilasError("plan_without_calls", "the plan does not say what to do")
    if len(plan.calls) > rules.MAX_CALLS:
        raise SilasError("plan_too_many_calls", _NOT_HERE)
    if rules.hides_something(plan.body):
        raise SilasError("hidden_characters", _HIDDEN)
    if len({call_digest(call.tool, call.args) for call in plan.calls}) < len(plan.calls):
        raise SilasError("plan_call_twice", "the plan asks for the same thing twice")
    for call in plan.calls:
        if call.tool not in tools or call.tool not in access:
            raise SilasError("tool_not_granted", _NOT_HERE, extra={"tool": call.tool})
        _require_arguments(Wanted(call, tools[call.tool]))
    return tuple(Wanted(call, tools[call.tool]) for call in plan.calls)


def _require_arguments(wanted: Wanted) -> None:
    """Arguments that fit the tool, and that a person sees as they are. Raises `SilasError` in the house's own words."""
    tool, args = wanted.tool, wanted.call.args
    if skill_rules.argument_problem(tool, args):
        which = skill_rules.argument_at_fault(tool, args)
        raise SilasError("bad_arguments", "something is missing or not right" + (f" ({which})" if which else ""))
    if rules.hides_something(args):
        raise SilasError("hidden_characters", _HIDDEN)


def _require_room(wanted: Sequence[Wanted], *, subject: str, session_id: UUID | None) -> None:
    """Not the same thing twice, and not more than a few things at once: a review queue can be flooded too. A customer's
    conversations wait for each other here."""
    lock_customer(subject)
    waiting = open_items_of(subject=subject, session_id=session_id)
    if len(waiting) >= rules.MAX_WAITING:
        raise SilasError("too_much_waiting", "several things you asked for still wait, and those come first")
    asked = {call_digest(each.call.tool, each.call.args) for each in wanted}
    if any(call_digest(call.tool, call.args) in asked for item in waiting for call in item.spec.calls):
        raise SilasError("waiting_already", "exactly this is under way already")


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
    _require_telling(wanted, from_values)
    return asks


def _require_telling(wanted: Sequence[Wanted], gates: Sequence[GateSpec]) -> None:
    """The visitor reads the title at every step: values of the model's are in it, so it passes the response gates as it
    stands, or the plan is refused."""
    title = intent_of(wanted)
    report = check_gates(gates, GateTrigger.EVERY_AGENT_RESPONSE, {"response": title})
    if report.blocked or report.needs_approval or report.context["response"] != title:
        raise SilasError("gate_blocked", _NOT_HERE)


def _sentence(blocked: GateResult, goal: WorkItem | None) -> str:
    """What the company wants said about this refusal, else what the gate found."""
    escalation, _ = escalation_for(blocked.on_block, goal.spec.escalation if goal else {})
    return escalation.message or blocked.reason


def _bound_spec(plan: WorkItemSpec, wanted: Sequence[Wanted], subject: str) -> WorkItemSpec:
    """The plan as the harness lets it stand: a model's own checks could only make what was done look undone."""
    return WorkItemSpec(
        id=str(uuid4()),
        type=WorkItemType.TASK,
        title=intent_of(wanted),
        domain=rules.domain_of(subject),
        body=plan.body,
        interaction_mode=InteractionMode.CONFIRM_ONLY_WHEN_REQUIRED,
        verify=checks_of([each.tool for each in wanted]),
        skills=list(dict.fromkeys(each.tool.skill for each in wanted)),
    )


def _standing_spec(wanted: Sequence[Wanted], goal: WorkItem | None, subject: str) -> WorkItemSpec | None:
    """The task that the goal's own template would start for this call; None when it would not (spec 5.2.3 step 4).

    Nothing of the model's plan is in it but the values of the call.
    """
    if goal is None or goal.approval_token is None or len(wanted) != 1:
        return None
    if _used_today(wanted[0], goal, subject):
        return None
    policy = goal.spec
    body = plans.fill(policy.failure_context, wanted[0].call) if policy.failure_context else None
    if body is None:
        return None
    own = [check for check in checks_of([wanted[0].tool]) if check not in policy.verify]
    return WorkItemSpec(
        id=str(uuid4()),
        type=WorkItemType.TASK,
        title=intent_of(wanted),
        parent=policy.id,
        spawned_by=policy.id,
        domain=rules.domain_of(subject),
        budget=_within_defaults(policy.budget),
        body=body,
        verify=[*policy.verify, *own],
        gates=policy.gates,
        skills=[wanted[0].tool.skill],
        escalation=policy.escalation,
        on_failure=policy.on_failure,
    )


def _used_today(wanted: Wanted, goal: WorkItem, subject: str) -> bool:
    """Whether the standing yes served this customer within a day about a record that the call names too. A limit on one
    call is no limit on many: what is cut into small pieces comes before a person from the second piece on."""
    named = skills.keys_of(subject, wanted.tool.records) & _words(wanted.call)
    served = standing_items_of(goal, subject=subject, since=now() - timedelta(days=1)) if named else []
    return any(named & _words(call) for item in served for call in item.spec.calls)


def _words(call: PlannedCall) -> set[str]:
    return {value for value in call.args.values() if isinstance(value, str)}


def _runs_at_once(item: WorkItem, goal: WorkItem) -> bool:
    verdict = authorize_standing(item, goal)
    return verdict is not None and verdict.ok


def _within_defaults(asked: Budget) -> Budget:
    """A goal may ask for less than usual, never for more."""
    usual = Budget()
    return Budget(**{name: min(getattr(asked, name), getattr(usual, name)) for name in Budget.model_fields})
