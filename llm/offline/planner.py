"""Write a plan with `builtin:grounded`: front matter of spec 7.2 and one call block for each call, from checked values.

No word of the visitor is in the prose: their values appear in the title, on one line, and as JSON in the call blocks.
Pure.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Sequence
from uuid import NAMESPACE_URL, uuid5

from kernel.canonical import canonical_json
from llm.briefing import Briefing, ToolBrief
from llm.calls import PlannedCall, call_block
from llm.enums import InteractionMode, PlanActionType
from llm.offline import arguments, dialogue, phrases
from llm.offline.moves import Move, Say, ToolResult
from llm.schemas import AgentResponse, PlanAction

_SLOT = re.compile(r"\{(\w+)\}")
_UNPRINTABLE = re.compile(r"[^\S ]+|[\x00-\x1f\x7f-\x9f\u2028\u2029`*_#<>\[\]]+")
_TITLE_LENGTH = 120
_VALUE_LENGTH = 200


def next_move(briefing: Briefing, done: Sequence[ToolResult], available: Collection[str]) -> Move:
    if briefing.work_body and not briefing.requested:
        # Asked for help with work that failed: it reads no reasons, so it has neither advice nor another plan.
        return Say(AgentResponse(message=phrases.AS_APPROVED))
    calls = briefing.requested or _calls_from_history(briefing)
    known = {tool.name: tool for tool in briefing.tools}
    if not calls or any(call.tool not in known for call in calls):
        return Say(
            AgentResponse(message=f"{phrases.NO_SUCH_TOOL} {phrases.OFFER}", suggestions=[phrases.TALK_TO_PERSON])
        )
    for call in calls:
        tool, args = known[call.tool], arguments.valid(known[call.tool], call.args)
        if missing := arguments.missing(tool, args):
            return Say(AgentResponse(message=f"{phrases.CAN_DO} {arguments.question(tool, missing[0])}"))
        if not arguments.fits(tool, call.args):
            return Say(
                AgentResponse(message=f"{phrases.NO_SUCH_TOOL} {phrases.OFFER}", suggestions=[phrases.TALK_TO_PERSON])
            )
    return Say(_proposal(briefing, [(known[call.tool], call) for call in calls]))


def _calls_from_history(briefing: Briefing) -> tuple[PlannedCall, ...]:
    task = dialogue.states_before_and_after(briefing)[1].task
    return (PlannedCall(task.tool.name, task.args),) if task else ()


def _proposal(briefing: Briefing, steps: Sequence[tuple[ToolBrief, PlannedCall]]) -> AgentResponse:
    action = PlanAction(action=PlanActionType.PROPOSE, plan_markdown=plan_markdown(briefing, steps))
    prepared = "\n".join(f"- {_title(tool, call)}{_details(tool, call)}" for tool, call in steps)
    return AgentResponse(message=f"{phrases.PREPARED}\n{prepared}\n\n{phrases.WILL_TELL}", plan_action=action)


def plan_markdown(briefing: Briefing, steps: Sequence[tuple[ToolBrief, PlannedCall]]) -> str:
    title = "; ".join(_title(tool, call) for tool, call in steps)[:_TITLE_LENGTH]
    skills = sorted({tool.skill for tool, _ in steps if tool.skill})
    todo = "\n\n".join(
        f"{number}. {_title(tool, call)}\n\n{call_block(call)}" for number, (tool, call) in enumerate(steps, 1)
    )
    return f"""---
id: {_plan_id(briefing, steps)}
type: task
title: {json.dumps(title, ensure_ascii=False)}
interaction_mode: {InteractionMode.CONFIRM_ONLY_WHEN_REQUIRED}
skills: {json.dumps(skills)}
verify: []
on_stuck: consult_planner
---

# Context
A visitor asked for this in a conversation, at access level {_plain(briefing.level)}.

# What to do
{todo}

# Constraints
Make exactly the calls above, once each and in this order, and no other. Change nothing else.

# If you get stuck
Stop at the first call that fails, leave the rest undone, and report what the tool said.
"""


def _plan_id(briefing: Briefing, steps: Sequence[tuple[ToolBrief, PlannedCall]]) -> str:
    """The same turn and calls give the same id; another turn (`briefing.reference`) another one."""
    parts = [briefing.reference, len(briefing.history), *({"tool": call.tool, "args": call.args} for _, call in steps)]
    return f"task-{uuid5(NAMESPACE_URL, canonical_json(parts))}"


def _title(tool: ToolBrief, call: PlannedCall) -> str:
    template = tool.intent or tool.description.split(". ")[0].rstrip(".") or tool.name
    return _plain(_SLOT.sub(lambda slot: str(call.args.get(slot[1], slot[0])), template))[:_TITLE_LENGTH]


def _details(tool: ToolBrief, call: PlannedCall) -> str:
    """The values that the title does not hold, in the order of the tool's schema."""
    title = _title(tool, call)
    values = ((name, _plain(str(call.args[name]))) for name in arguments.properties(tool) if name in call.args)
    details = [
        f"{arguments.label(tool, name)}: {value[:_VALUE_LENGTH]}" for name, value in values if value not in title
    ]
    return f" ({'; '.join(details)})" if details else ""


def _plain(text: str) -> str:
    """One line without anything that markdown or YAML would read."""
    return " ".join(_UNPRINTABLE.sub(" ", text).split())
