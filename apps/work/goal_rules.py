"""Validate goal files: find what parses as a plan but could never work (contract silas 16, spec 13.2).

Examples are a level that cannot be reached, an unknown escalation or a transfer without a queue. At run time these
would only show as a report, a level withheld for ever, or an unanswered request; here they are reported with their
line. Called when a goal is imported; an installed goal keeps working. Pure.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import NoReturn

from apps.gates.enums import EscalationKind, GateTrigger
from apps.gates.rules import BUILTIN_ESCALATIONS
from apps.gates.schemas import EscalationSpec
from apps.work import plans
from apps.work.enums import WorkItemType
from apps.work.schemas import WorkItemSpec
from kernel.error_codes import ErrorCode

PUBLIC = "public"
# The only tool that does not come from a skill: search of the company's documents.
KNOWLEDGE_TOOL = "knowledge_search"
# Actions that hand over to another one when they do not help.
_NEED_FALLBACK = frozenset(
    {EscalationKind.SUPPRESS_AND_REPHRASE, EscalationKind.SUPPRESS_AND_ESCALATE, EscalationKind.RETRY}
)


def read_goal(markdown: str, *, other_gates: Mapping[str, str]) -> plans.ParsedPlan:
    """Parse the goal of a markdown file. `other_gates`: gates that run there already, each with its trigger.

    Raises `SilasError` with `extra["line"]`: plan_not_a_goal, goal_gate_twice, goal_gate_unknown, goal_level_order,
    goal_escalation_unknown, goal_escalation_circle, goal_queue_missing, goal_fallback_missing, goal_instruction_missing
    and those of `plans.parse`.
    """
    goal = plans.parse_with_lines(markdown)
    if goal.spec.type != WorkItemType.GOAL:
        plans.raise_plan_error(ErrorCode.PLAN_NOT_A_GOAL, "only a goal can be imported.", goal.line(["type"]))
    _require_gates(goal)
    _require_levels(goal, {**other_gates, **{gate.name: gate.on for gate in goal.spec.gates}})
    _require_escalations(goal)
    return goal


def require_tools(goal: plans.ParsedPlan, known: Collection[str]) -> None:
    """Require that every tool named by a level exists. Raises `SilasError("goal_tool_unknown")`."""
    for name, level in goal.spec.access_levels.items():
        for place, tool in enumerate(level.tools):
            if tool != KNOWLEDGE_TOOL and tool not in known:
                at = goal.line(["access_levels", name, "tools", place])
                plans.raise_plan_error(
                    ErrorCode.GOAL_TOOL_UNKNOWN, f"no skill of this goal has a tool {tool}.", at, tool=tool
                )


def is_same_policy(one: WorkItemSpec, other: WorkItemSpec) -> bool:
    """Whether two goals are equal apart from their ids."""
    return one.model_copy(update={"id": ""}) == other.model_copy(update={"id": ""})


def _require_gates(goal: plans.ParsedPlan) -> None:
    names = [gate.name for gate in goal.spec.gates]
    for place, name in enumerate(names):
        if name in names[:place]:
            plans.raise_plan_error(
                ErrorCode.GOAL_GATE_TWICE, f"the gate {name} is defined twice.", goal.line(["gates", place]), gate=name
            )


def _require_levels(goal: plans.ParsedPlan, gates: Mapping[str, str]) -> None:
    levels = goal.spec.access_levels
    if levels and next(iter(levels)) != PUBLIC:
        plans.raise_plan_error(
            ErrorCode.GOAL_LEVEL_ORDER,
            "the first level is public; each next one reaches more.",
            goal.line(["access_levels"]),
        )
    for name, level in levels.items():
        if (name == PUBLIC) == bool(level.requires):
            problem = "public requires nothing." if name == PUBLIC else f"nothing leads to the level {name}."
            plans.raise_plan_error(ErrorCode.GOAL_LEVEL_ORDER, problem, goal.line(["access_levels", name]), level=name)
        for place, gate in enumerate(level.requires):
            if gates.get(gate) != GateTrigger.EVERY_USER_MESSAGE:
                at = goal.line(["access_levels", name, "requires", place])
                problem = f"no gate {gate} checks visitors' messages."
                plans.raise_plan_error(ErrorCode.GOAL_GATE_UNKNOWN, problem, at, gate=gate)


def _require_escalations(goal: plans.ParsedPlan) -> None:
    known = goal.spec.escalation
    for place, gate in enumerate(goal.spec.gates):
        if not _is_known(gate.on_block, known):
            _refuse_name(goal, gate.on_block, goal.line(["gates", place, "on_block"]))
    for name, escalation in known.items():
        _require_whole(goal, name, escalation)
        _require_end(goal, name, known)


def _require_whole(goal: plans.ParsedPlan, name: str, escalation: EscalationSpec) -> None:
    at, action = goal.line(["escalation", name]), escalation.action
    if action == EscalationKind.TRANSFER_TO_QUEUE and not (escalation.queue or "").strip():
        plans.raise_plan_error(ErrorCode.GOAL_QUEUE_MISSING, f"{name} doesn't name a queue.", at, escalation=name)
    if action in _NEED_FALLBACK and not escalation.fallback:
        problem = f"{name} has no fallback."
        plans.raise_plan_error(ErrorCode.GOAL_FALLBACK_MISSING, problem, at, escalation=name)
    if action == EscalationKind.SPAWN_TASK and not escalation.instruction:
        problem = f"{name} has no instruction for the task."
        plans.raise_plan_error(ErrorCode.GOAL_INSTRUCTION_MISSING, problem, at, escalation=name)


def _require_end(goal: plans.ParsedPlan, name: str, known: Mapping[str, EscalationSpec]) -> None:
    seen, at = [name], goal.line(["escalation", name, "fallback"])
    while (fallback := known[seen[-1]].fallback if seen[-1] in known else None) is not None:
        if not _is_known(fallback, known):
            _refuse_name(goal, fallback, at)
        if fallback in seen:
            plans.raise_plan_error(
                ErrorCode.GOAL_ESCALATION_CIRCLE, f"{' → '.join([*seen, fallback])} is a loop.", at, escalation=name
            )
        seen.append(fallback)


def _is_known(name: str, known: Mapping[str, EscalationSpec]) -> bool:
    return name in known or name in BUILTIN_ESCALATIONS


def _refuse_name(goal: plans.ParsedPlan, name: str, line: int) -> NoReturn:
    plans.raise_plan_error(ErrorCode.GOAL_ESCALATION_UNKNOWN, f"there is no escalation {name}.", line, escalation=name)
