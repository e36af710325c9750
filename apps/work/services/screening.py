"""May what a plan asks for be asked for here? Its calls are known, allowed, well-formed and within policy, or refused.

Reads rows and asks the gates that decide from values; writes nothing but what gates want on record. Every refusal is a
`SilasError` in the house's own words, because a visitor may read it (ADR 0013).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from apps.audit.enums import AuditEvent
from apps.audit.services import record
from apps.gates.allowance import Allowance, ComputeLimit
from apps.gates.enums import GateProvider, GateTrigger
from apps.gates.rules import escalation_for
from apps.gates.schemas import GateResult, GateSpec
from apps.gates.services import check_gates
from apps.guard.schemas import call_digest
from apps.skills import queries as skills
from apps.skills import rules as skill_rules
from apps.skills.schemas import ToolSpec
from apps.work import plans, project_rules, rules
from apps.work.enums import WorkItemType
from apps.work.locks import lock_customer
from apps.work.models import WorkItem
from apps.work.plans import ProjectPlan
from apps.work.provenance import without_claims
from apps.work.queries import open_items_of
from apps.work.schemas import WorkItemSpec
from apps.work.services.approval_requests import RequestedCall, shorten, title_of
from kernel.errors import SilasError
from kernel.llm.calls import PlannedCall
from kernel.tenancy.scope import current_scope
from kernel.unicode_safety import escape_hidden, has_hidden_characters

# Gates that need nothing but what stands before them: no script, no library, no model.
_FROM_VALUES = frozenset({GateProvider.PREDICATE, GateProvider.CUSTOM})
_NOT_HERE = "that is not something I can do here"
_BROKEN = "I could not prepare it properly"
_MOST_TOLD, _TOLD_CHARS, _NAME_CHARS = 20, 200, 80
_HIDDEN = "it holds characters that cannot be seen; please write it again by hand"


def read_plan(plan_markdown: str) -> WorkItemSpec | ProjectPlan:
    """The task or project of a plan. Raises `SilasError` with the reader's code; its words may repeat the model's and
    are not for the visitor."""
    try:
        plan = plans.parse(plan_markdown, lenient=True)
        if plan.type != WorkItemType.PROJECT:
            return _without_claims(plan)
        project = _project(plan)
        return ProjectPlan(_without_claims(project.spec), tuple(map(_without_claims, project.tasks)))
    except SilasError as refusal:
        raise SilasError(refusal.code, _BROKEN) from refusal


def _without_claims(plan: WorkItemSpec) -> WorkItemSpec:
    return plan.model_copy(update={"body": without_claims(plan.body)})


def _project(plan: WorkItemSpec) -> ProjectPlan:
    project = plans.read_project(plan, lenient=True)
    project_rules.require_no_tasks_block(project.spec.body)
    return project


def tasks_of(plan: WorkItemSpec | ProjectPlan) -> tuple[WorkItemSpec, ...]:
    return plan.tasks if isinstance(plan, ProjectPlan) else (plan,)


def tools_of(goal: WorkItem | None) -> Mapping[str, ToolSpec]:
    """What can be asked for under a goal; without the skills of it that were switched off."""
    return {tool.name: tool for tool in skills.tools_in_use(goal.spec.skills)} if goal else {}


def tools_in(refs: Sequence[str]) -> Mapping[str, ToolSpec]:
    return {tool.name: tool for tool in skills.tools_for(refs)}


def resolve_calls(calls: Sequence[PlannedCall], tools: Mapping[str, ToolSpec]) -> tuple[RequestedCall, ...]:
    """Calls that the house wrote itself, with their tools. Raises `SilasError`: tool_not_granted, bad_arguments,
    hidden_characters."""
    for call in calls:
        if call.tool not in tools:
            raise SilasError("tool_not_granted", _NOT_HERE, extra={"tool": call.tool})
        _require_arguments(RequestedCall(call, tools[call.tool]))
    return tuple(RequestedCall(call, tools[call.tool]) for call in calls)


def resolve_plan_calls(
    plan: WorkItemSpec | ProjectPlan, tools: Mapping[str, ToolSpec], access: frozenset[str]
) -> tuple[tuple[RequestedCall, ...], ...]:
    """The calls of each task with their tools. Raises `SilasError` for anything that cannot be asked for here."""
    tasks = tasks_of(plan)
    if sum(len(task.calls) for task in tasks) > rules.MAX_CALLS:
        raise SilasError("plan_too_many_calls", _NOT_HERE)
    if isinstance(plan, ProjectPlan) and (plan.spec.gates or has_hidden_characters(plan.spec.body)):
        raise SilasError("plan_gate_not_allowed" if plan.spec.gates else "hidden_characters", _NOT_HERE)
    found = tuple(_wanted(task, tools, access) for task in tasks)
    calls = [each.call for wanted in found for each in wanted]
    if len({call_digest(call.tool, call.args) for call in calls}) < len(calls):
        raise SilasError("plan_call_twice", "the plan asks for the same thing twice")
    return found


def _wanted(plan: WorkItemSpec, tools: Mapping[str, ToolSpec], access: frozenset[str]) -> tuple[RequestedCall, ...]:
    if plan.type != WorkItemType.TASK or plan.gates:
        raise SilasError("plan_gate_not_allowed" if plan.gates else "plan_type_not_allowed", _NOT_HERE)
    if not plan.calls:
        raise SilasError("plan_without_calls", "the plan does not say what to do")
    if has_hidden_characters(plan.body):
        raise SilasError("hidden_characters", _HIDDEN)
    return resolve_calls(plan.calls, {name: tool for name, tool in tools.items() if name in access})


def _require_arguments(wanted: RequestedCall) -> None:
    """Arguments that fit the tool, and that a person sees as they are."""
    tool, args = wanted.tool, wanted.call.args
    if skill_rules.argument_problem(tool, args):
        which = skill_rules.faulty_argument(tool, args)
        raise SilasError("bad_arguments", "something is missing or not right" + (f" ({which})" if which else ""))
    if has_hidden_characters(args):
        raise SilasError("hidden_characters", _HIDDEN)


def require_room(
    wanted: Sequence[RequestedCall],
    *,
    subject: str,
    session_id: UUID | None,
    replaces: WorkItem | None = None,
    many: bool = False,
) -> None:
    """Not the same thing twice, and not more than a few things at once: a review queue can be flooded too. A customer's
    conversations wait for each other here. `many`: the house itself asks, on cards of many lines."""
    lock_customer(subject)
    found = open_items_of(subject=subject, session_id=session_id)
    waiting = [item for item in found if replaces is None or item.pk != replaces.pk]
    if not many and sum(not item.is_part for item in waiting) >= rules.MAX_WAITING:
        raise SilasError("too_much_waiting", "several things you asked for still wait, and those come first")
    asked = {call_digest(each.call.tool, each.call.args) for each in wanted}
    if any(call_digest(call.tool, call.args) in asked for item in waiting for call in item.spec.calls):
        raise SilasError("waiting_already", "exactly this is under way already")


def check_call_gates(
    wanted: Sequence[RequestedCall], gates: Sequence[GateSpec], goal: WorkItem | None
) -> GateResult | None:
    """The gate that wants a person, if one does. Raises `SilasError("gate_blocked")` with the gate's own sentence. Rows
    are held meanwhile, so all gates of a transaction have one time together; what comes too late is a no."""
    from_values = [gate for gate in gates if gate.provider in _FROM_VALUES]
    asks = None
    for each in wanted:
        context = {"tool_name": each.call.tool, "tool_args": dict(each.call.args)}
        report = check_gates(from_values, GateTrigger.ON_TOOL_CALL, context, allowance=_allowance())
        for event, data in report.audit:
            record(AuditEvent(event), data=data)
        if report.blocked:
            raise SilasError("gate_blocked", _sentence(report.blocked, goal), extra={"gate": report.blocked.gate_name})
        if report.context["tool_args"] != each.call.args:
            raise SilasError("gate_blocked", "the values are outside of what is allowed")
        asks = asks or report.needs_approval
    _require_telling(wanted, from_values)
    return asks


def _require_telling(wanted: Sequence[RequestedCall], gates: Sequence[GateSpec]) -> None:
    """The visitor reads titles at every step: values of the model's are in them, so each passes the response gates as
    it stands, or the plan is refused."""
    titles = {title_of(wanted), *(each.intent for each in wanted)}
    for title in sorted(titles):
        told = {"response": title}
        report = check_gates(gates, GateTrigger.EVERY_AGENT_RESPONSE, told, allowance=_allowance())
        if report.blocked or report.needs_approval or report.context["response"] != title:
            raise SilasError("gate_blocked", _NOT_HERE)


def visible_values(wanted: Sequence[RequestedCall], gates: Sequence[GateSpec]) -> str:
    """The values of the calls, a line each, so that a visitor sees one that is not theirs. They are a model's words
    like any answer: nothing is told where a response gate has something against them."""
    lines = [line for each in wanted for line in _value_lines(each)]
    lines = lines if len(lines) <= _MOST_TOLD else [*lines[: _MOST_TOLD - 1], "…"]
    from_values = [gate for gate in gates if gate.provider in _FROM_VALUES]
    told = "\n".join(lines)
    report = check_gates(from_values, GateTrigger.EVERY_AGENT_RESPONSE, {"response": told}, allowance=_allowance())
    unfit = report.blocked or report.needs_approval or report.context["response"] != told
    return "" if unfit else told


def _value_lines(wanted: RequestedCall) -> list[str]:
    known: Mapping[str, Any] = wanted.tool.args.get("properties") or {}
    named = {name: known.get(name, {}).get("title") or name.replace("_", " ") for name in wanted.call.args}
    return [
        f"{shorten(_one_line(named[name]), _NAME_CHARS)}: {_one_line(value)}"
        for name, value in wanted.call.args.items()
    ]


def _one_line(value: Any) -> str:
    said = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return shorten(escape_hidden(" ".join(said.split())), _TOLD_CHARS)


def _allowance() -> Allowance:
    """32 gates for each text and each call; for all that this transaction asks, one time (`TRANSACTION_SECONDS`)."""
    return Allowance(compute_limit=current_scope().counted.setdefault(ComputeLimit, ComputeLimit()))


def _sentence(blocked: GateResult, goal: WorkItem | None) -> str:
    """What the company wants said about this refusal, else what the gate found."""
    escalation, _ = escalation_for(blocked.on_block, goal.spec.escalation if goal else {})
    return escalation.message or blocked.reason
