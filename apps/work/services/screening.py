"""Validate what a plan asks for: its calls are known, allowed, well-formed and within policy.

Reads rows and runs the gates that decide from values; writes nothing but their audit notes. Every refusal is a
`SilasError` in our own words, because a visitor may read it.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any
from uuid import UUID

from apps.audit.enums import AuditEvent
from apps.audit.services import record
from apps.gates.allowance import Allowance, ComputeLimit
from apps.gates.enums import GateTrigger
from apps.gates.providers import PROVIDERS
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
from apps.work.visitor_messages import Change, lines_of
from kernel.error_codes import ErrorCode
from kernel.errors import SilasError
from kernel.language import gettext, gettext_lazy
from kernel.tenancy.scope import current_scope
from kernel.unicode_safety import escape_hidden, has_hidden_characters
from llm.calls import PlannedCall

_NOT_HERE = gettext_lazy("that isn't something I can do here")
_UNREADABLE = gettext_lazy("I couldn't prepare it properly")
_MAX_LINES, _LINE_CHARS, _NAME_CHARS = 20, 200, 80
_HIDDEN = gettext_lazy("it contains invisible characters; please type it again")


def read_plan(plan_markdown: str) -> WorkItemSpec | ProjectPlan:
    """Return the task or project of a plan. Raises `SilasError` with the parser's code; the parser's words may repeat
    the model's and are not shown to the visitor."""
    try:
        plan = plans.parse(plan_markdown, lenient=True)
        if plan.type != WorkItemType.PROJECT:
            return _without_claims(plan)
        project = plans.read_project(plan, lenient=True)
        project_rules.require_no_tasks_block(project.spec.body)
        return ProjectPlan(_without_claims(project.spec), tuple(map(_without_claims, project.tasks)))
    except SilasError as refusal:
        raise SilasError(refusal.code, _UNREADABLE) from refusal


def _without_claims(plan: WorkItemSpec) -> WorkItemSpec:
    return plan.model_copy(update={"body": without_claims(plan.body)})


def tasks_of(plan: WorkItemSpec | ProjectPlan) -> tuple[WorkItemSpec, ...]:
    return plan.tasks if isinstance(plan, ProjectPlan) else (plan,)


def tools_of(goal: WorkItem | None) -> Mapping[str, ToolSpec]:
    """Return the tools that can be asked for under a goal, without those of skills that are switched off."""
    return {tool.name: tool for tool in skills.tools_in_use(goal.spec.skills)} if goal else {}


def tools_in(refs: Sequence[str]) -> Mapping[str, ToolSpec]:
    return {tool.name: tool for tool in skills.tools_for(refs)}


def resolve_calls(calls: Sequence[PlannedCall], tools: Mapping[str, ToolSpec]) -> tuple[RequestedCall, ...]:
    """Pair calls that the platform itself wrote with their tools. Raises `SilasError`: tool_not_granted, bad_arguments,
    hidden_characters."""
    for call in calls:
        if call.tool not in tools:
            raise SilasError(ErrorCode.TOOL_NOT_GRANTED, _NOT_HERE, extra={"tool": call.tool})
        _require_arguments(RequestedCall(call, tools[call.tool]))
    return tuple(RequestedCall(call, tools[call.tool]) for call in calls)


def resolve_plan_calls(
    plan: WorkItemSpec | ProjectPlan, tools: Mapping[str, ToolSpec], access: frozenset[str]
) -> tuple[tuple[RequestedCall, ...], ...]:
    """Pair the calls of each task with their tools. Raises `SilasError` for anything that cannot be asked for here."""
    tasks = tasks_of(plan)
    if sum(len(task.calls) for task in tasks) > rules.MAX_CALLS:
        raise SilasError(ErrorCode.PLAN_TOO_MANY_CALLS, _NOT_HERE)
    if isinstance(plan, ProjectPlan) and (plan.spec.gates or has_hidden_characters(plan.spec.body)):
        raise SilasError(ErrorCode.PLAN_GATE_NOT_ALLOWED if plan.spec.gates else ErrorCode.HIDDEN_CHARACTERS, _NOT_HERE)
    calls_by_task = tuple(_task_calls(task, tools, access) for task in tasks)
    calls = [requested.call for requested_calls in calls_by_task for requested in requested_calls]
    # One approval gives each call its effect once, by its digest: the second would be refused when it runs.
    if len({call_digest(call.tool, call.args) for call in calls}) < len(calls):
        raise SilasError(ErrorCode.PLAN_CALL_TWICE)
    return calls_by_task


def _task_calls(plan: WorkItemSpec, tools: Mapping[str, ToolSpec], access: frozenset[str]) -> tuple[RequestedCall, ...]:
    if plan.type != WorkItemType.TASK or plan.gates:
        raise SilasError(ErrorCode.PLAN_GATE_NOT_ALLOWED if plan.gates else ErrorCode.PLAN_TYPE_NOT_ALLOWED, _NOT_HERE)
    if not plan.calls:
        raise SilasError(ErrorCode.PLAN_WITHOUT_CALLS)
    if has_hidden_characters(plan.body):
        raise SilasError(ErrorCode.HIDDEN_CHARACTERS, _HIDDEN)
    return resolve_calls(plan.calls, {name: tool for name, tool in tools.items() if name in access})


def _require_arguments(requested: RequestedCall) -> None:
    """Require arguments that fit the tool and contain no hidden characters."""
    tool, args = requested.tool, requested.call.args
    if skill_rules.argument_problem(tool, args):
        which = skill_rules.faulty_argument(tool, args)
        raise SilasError(
            ErrorCode.BAD_ARGUMENTS, gettext("something is missing or incorrect") + (f" ({which})" if which else "")
        )
    if has_hidden_characters(args):
        raise SilasError(ErrorCode.HIDDEN_CHARACTERS, _HIDDEN)


def require_room(
    calls: Sequence[RequestedCall],
    *,
    subject: str,
    session_id: UUID | None,
    replaces: WorkItem | None = None,
    many: bool = False,
) -> None:
    """Require that the same call is not open already, and that not too many things are: requests could flood the review
    queue. A customer's conversations are serialized here. `many`: the platform itself asks, on cards of many lines."""
    # Before the rows are read: two conversations of one customer could otherwise both find room.
    lock_customer(subject)
    open_items = open_items_of(subject=subject, session_id=session_id)
    waiting = [item for item in open_items if replaces is None or item.pk != replaces.pk]
    if not many and sum(not item.is_part for item in waiting) >= rules.MAX_WAITING:
        raise SilasError(ErrorCode.TOO_MUCH_WAITING)
    digests = {call_digest(requested.call.tool, requested.call.args) for requested in calls}
    if any(call_digest(call.tool, call.args) in digests for item in waiting for call in item.spec.calls):
        raise SilasError(ErrorCode.WAITING_ALREADY)


def check_call_gates(
    calls: Sequence[RequestedCall], gates: Sequence[GateSpec], goal: WorkItem | None
) -> GateResult | None:
    """Return the gate that needs a person, if one does. Raises `SilasError("gate_blocked")` with the gate's own
    sentence. Rows are locked meanwhile, so all gates of a transaction share one time limit; a timeout blocks."""
    from_values = [gate for gate in gates if not PROVIDERS[gate.provider].is_slow]
    asks = None
    for requested in calls:
        context = {"tool_name": requested.call.tool, "tool_args": dict(requested.call.args)}
        report = check_gates(from_values, GateTrigger.ON_TOOL_CALL, context, allowance=_allowance())
        for event, data in report.audit:
            record(AuditEvent(event), data=data)
        if report.blocked:
            escalation, _ = escalation_for(report.blocked.on_block, goal.spec.escalation if goal else {})
            raise SilasError(
                ErrorCode.GATE_BLOCKED,
                escalation.message or report.blocked.reason,
                extra={"gate": report.blocked.gate_name},
            )
        # A gate that rewrites a value would have the person approve another call than the plan's.
        if report.context["tool_args"] != requested.call.args:
            raise SilasError(ErrorCode.GATE_BLOCKED, gettext("the values are outside of what is allowed"))
        asks = asks or report.needs_approval
    _require_tellable_titles(calls, from_values)
    return asks


def _require_tellable_titles(calls: Sequence[RequestedCall], gates: Sequence[GateSpec]) -> None:
    """Require that the titles pass the response gates unchanged: they contain values of the model's, and the visitor
    reads them at every step."""
    titles = {title_of(calls), *(requested.intent for requested in calls)}
    # In a fixed order, so that the audit notes of one plan are the same each time.
    for title in sorted(titles):
        response = {"response": title}
        report = check_gates(gates, GateTrigger.EVERY_AGENT_RESPONSE, response, allowance=_allowance())
        if report.blocked or report.needs_approval or report.context["response"] != title:
            raise SilasError(ErrorCode.GATE_BLOCKED, _NOT_HERE)


def visible_changes(
    calls: Sequence[RequestedCall], gates: Sequence[GateSpec], *, granted: Sequence[ToolSpec], subject: str
) -> tuple[Change, ...]:
    """Return the values of the calls, so that a visitor notices a wrong one. They count as a model's words: nothing is
    shown if a response gate objects.

    What a value was before is shown to the customer `subject` of their own records, where one of the tools that their
    level grants (`granted`) reads that book.
    """
    readable = {book for tool in granted if not tool.acting for book in tool.records} if subject else set()
    changes = [change for requested in calls for change in _changes(requested, subject, readable)]
    shown = tuple(changes if len(changes) <= _MAX_LINES else [*changes[: _MAX_LINES - 1], Change("", "…")])
    from_values = [gate for gate in gates if not PROVIDERS[gate.provider].is_slow]
    new_values = tuple(replace(change, before="") for change in shown)
    for told in dict.fromkeys((shown, new_values)):
        response = "\n".join([*(change.before for change in told if change.before), lines_of(told)])
        report = check_gates(
            from_values, GateTrigger.EVERY_AGENT_RESPONSE, {"response": response}, allowance=_allowance()
        )
        if not (report.blocked or report.needs_approval or report.context["response"] != response):
            return told
    return ()


def _changes(requested: RequestedCall, subject: str, readable: Collection[str]) -> list[Change]:
    properties: Mapping[str, Any] = requested.tool.args.get("properties") or {}
    labels = {name: properties.get(name, {}).get("title") or name.replace("_", " ") for name in requested.call.args}
    before = skills.values_before(requested.tool, requested.call.args, subject, books=readable)
    return [
        Change(shorten(_one_line(labels[name]), _NAME_CHARS), _one_line(value), _one_line(before.get(name, "")))
        for name, value in requested.call.args.items()
    ]


def _one_line(value: object) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return shorten(escape_hidden(" ".join(text.split())), _LINE_CHARS)


def _allowance() -> Allowance:
    """32 gates for each text and each call, and one time limit for the transaction (`TRANSACTION_SECONDS`)."""
    return Allowance(compute_limit=current_scope().counted.setdefault(ComputeLimit, ComputeLimit()))
