"""Does a goal that governs conversations hang together? The file of contract silas 16 (spec 13.2), read as it stands.

Pure. The plan parser says what is no plan; this says what is a plan and could never do what its author means: a level
nobody can reach, a gate whose escalation nobody wrote, a queue without a name. At run time the same mistakes would be
a report, a level withheld for ever, a person asked for nowhere: found here, with the line. Called when a goal is
imported; a goal that works already keeps working.
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

PUBLIC = "public"
# The one tool that no skill brings: the company's own documents.
KNOWLEDGE_TOOL = "knowledge_search"
# An action that asks again, or says something first, and then leaves it to another.
_NEED_FALLBACK = frozenset(
    {EscalationKind.SUPPRESS_AND_REPHRASE, EscalationKind.SUPPRESS_AND_ESCALATE, EscalationKind.RETRY}
)


def read_goal(markdown: str, *, other_gates: Mapping[str, str]) -> plans.ParsedPlan:
    """The goal of a markdown file. `other_gates`: the gates that run there already, each with its trigger.

    Raises `SilasError` with `extra["line"]`: plan_not_a_goal, goal_gate_twice, goal_gate_unknown, goal_level_order,
    goal_escalation_unknown, goal_escalation_circle, goal_queue_missing, goal_fallback_missing, goal_instruction_missing
    and those of `plans.parse`.
    """
    goal = plans.parse_with_lines(markdown)
    if goal.spec.type != WorkItemType.GOAL:
        plans.raise_plan_error("plan_not_a_goal", "only a goal can be imported.", goal.line(["type"]))
    _require_gates(goal)
    _require_levels(goal, {**other_gates, **{gate.name: gate.on for gate in goal.spec.gates}})
    _require_escalations(goal)
    return goal


def require_tools(goal: plans.ParsedPlan, known: Collection[str]) -> None:
    """Every tool that a level names is there. Raises `SilasError("goal_tool_unknown")`."""
    for name, level in goal.spec.access_levels.items():
        for place, tool in enumerate(level.tools):
            if tool != KNOWLEDGE_TOOL and tool not in known:
                at = goal.line(["access_levels", name, "tools", place])
                plans.raise_plan_error("goal_tool_unknown", f"no skill of this goal has a tool {tool}.", at, tool=tool)


def is_same_policy(one: WorkItemSpec, other: WorkItemSpec) -> bool:
    """Whether two goals say the same, whatever they are called in the books."""
    return one.model_copy(update={"id": ""}) == other.model_copy(update={"id": ""})


def _require_gates(goal: plans.ParsedPlan) -> None:
    names = [gate.name for gate in goal.spec.gates]
    for place, name in enumerate(names):
        if name in names[:place]:
            plans.raise_plan_error(
                "goal_gate_twice", f"the gate {name} stands twice.", goal.line(["gates", place]), gate=name
            )


def _require_levels(goal: plans.ParsedPlan, gates: Mapping[str, str]) -> None:
    levels = goal.spec.access_levels
    if levels and next(iter(levels)) != PUBLIC:
        plans.raise_plan_error(
            "goal_level_order", "the first level is public; each next one reaches more.", _at_levels(goal)
        )
    for name, level in levels.items():
        if (name == PUBLIC) == bool(level.requires):
            problem = "public requires nothing." if name == PUBLIC else f"nothing leads to the level {name}."
            plans.raise_plan_error("goal_level_order", problem, goal.line(["access_levels", name]), level=name)
        for place, gate in enumerate(level.requires):
            if gates.get(gate) != GateTrigger.EVERY_USER_MESSAGE:
                at = goal.line(["access_levels", name, "requires", place])
                problem = f"no gate {gate} looks at what a visitor writes."
                plans.raise_plan_error("goal_gate_unknown", problem, at, gate=gate)


def _at_levels(goal: plans.ParsedPlan) -> int:
    return goal.line(["access_levels"])


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
        plans.raise_plan_error("goal_queue_missing", f"{name} does not say to which queue.", at, escalation=name)
    if action in _NEED_FALLBACK and not escalation.fallback:
        problem = f"{name} does not say what follows when it does not help."
        plans.raise_plan_error("goal_fallback_missing", problem, at, escalation=name)
    if action == EscalationKind.SPAWN_TASK and not escalation.instruction:
        problem = f"{name} does not say what the task is to do."
        plans.raise_plan_error("goal_instruction_missing", problem, at, escalation=name)


def _require_end(goal: plans.ParsedPlan, name: str, known: Mapping[str, EscalationSpec]) -> None:
    seen, at = [name], goal.line(["escalation", name, "fallback"])
    while (fallback := known[seen[-1]].fallback if seen[-1] in known else None) is not None:
        if not _is_known(fallback, known):
            _refuse_name(goal, fallback, at)
        if fallback in seen:
            plans.raise_plan_error(
                "goal_escalation_circle", f"{' → '.join([*seen, fallback])} has no end.", at, escalation=name
            )
        seen.append(fallback)


def _is_known(name: str, known: Mapping[str, EscalationSpec]) -> bool:
    return name in known or name in BUILTIN_ESCALATIONS


def _refuse_name(goal: plans.ParsedPlan, name: str, line: int) -> NoReturn:
    plans.raise_plan_error("goal_escalation_unknown", f"nobody wrote an escalation {name}.", line, escalation=name)
