"""Steps 6 and 6.5: the tools that this level allows, those it withholds, and the skills described to the proxy.

Two views of the same frozen list: what the level allows becomes a guarded toolset, the rest is named with what is
needed to reach it. The guard checks the level again at every call.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from apps.access.levels import KNOWLEDGE_TOOL
from apps.access.rules import AccessController, Level
from apps.guard.enums import Intent
from apps.guard.offered_tools import OfferedTool
from apps.sessions import value_sources, window
from apps.sessions.state import Policy, Stop, TurnState
from apps.skills.schemas import ToolSpec
from llm.briefing import SkillBrief, ToolBrief, WithheldTool
from llm.context.budget import count_tokens
from llm.context.metadata import select_within_budget

if TYPE_CHECKING:
    from pydantic_ai.toolsets import AbstractToolset

KNOWLEDGE_SEARCH = OfferedTool(
    name=KNOWLEDGE_TOOL,
    description="Search the company's published documents for passages about a question.",
    parameters={
        "type": "object",
        "properties": {"query": {"type": "string", "minLength": 2, "maxLength": 400}},
        "required": ["query"],
        "additionalProperties": False,
    },
    intent=Intent.RETRIEVE_CHUNKS,
)
KNOWLEDGE_BRIEF = ToolBrief(KNOWLEDGE_SEARCH.name, KNOWLEDGE_SEARCH.description, KNOWLEDGE_SEARCH.parameters)
WHO_ARE_YOU = "For that I first need to know who you are."


async def build(state: TurnState) -> Stop | None:
    """What may be called comes before what is only named, and documents before all: of a catalogue that is too large
    the rest is not told of (spec 5.1 step 6.5), and not offered either.
    """
    allowed = state.access.allowed_tools()
    documents = (KNOWLEDGE_BRIEF,) if KNOWLEDGE_TOOL in allowed else ()
    room = window.BUDGET.metadata_tokens - sum(map(window.weight, documents))
    own = tuple(brief(tool) for tool in state.policy.tools if tool.name in allowed)
    own, untold = select_within_budget(own, tokens=room, weight_of=window.weight)
    held = withheld_tools(state.policy, state.access)
    room -= sum(map(window.weight, own))
    state.skills = tuple(SkillBrief(skill.name, skill.description) for skill in window.skills_for_proxy(state))
    state.withheld, unnamed = select_within_budget(held, tokens=room, weight_of=_weight)
    state.tools, state.untold = (*own, *documents), len(untold) + len(unnamed)
    return None


def withheld_tools(policy: Policy, access: AccessController) -> tuple[WithheldTool, ...]:
    """The tools above the visitor's level, each with what it takes to reach it."""
    return tuple(
        WithheldTool(brief(tool), level, _what_it_takes(policy, level))
        for tool in policy.tools
        if (level := access.withholding_level(tool.name)) is not None
    )


def _weight(held: WithheldTool) -> int:
    return window.weight(held.tool) + count_tokens(held.ask)


def toolset_for(state: TurnState) -> AbstractToolset[Any]:
    """Step 6: the whole catalogue behind the guard, less what the briefing has no room for, less what the level has
    not; acting tools are planned and approved, never called from a conversation."""
    from apps.guard.toolset import GuardedToolset

    context = {
        "customer": state.access.subject,
        "levels": state.access.reached_levels(),
        "skills": state.policy.skills,
        "turn": state.number,
    }
    catalogue = GuardedToolset(
        state.run,
        (*map(_offered, state.policy.tools), KNOWLEDGE_SEARCH),
        access=state.access.allowed_tools(),
        access_until=state.access.ends_at,
        gates=state.policy.gates,
        context=context,
        observe=state.hear,
        allowance=lambda: state.allowance,
        sources=lambda: value_sources.shown_to(state),
        passes=state.passes,
    )
    return catalogue.chained(names={tool.name for tool in state.tools})


def brief(tool: ToolSpec) -> ToolBrief:
    return ToolBrief(
        name=tool.name,
        description=tool.description,
        parameters=tool.args,
        acting=tool.acting,
        keywords=tuple(tool.keywords),
        ask=tool.ask,
        skill=tool.skill,
        intent=tool.intent,
    )


def _offered(tool: ToolSpec) -> OfferedTool:
    return OfferedTool(
        name=tool.name,
        description=tool.description,
        parameters=tool.args,
        intent=tool.via,
        acting=tool.acting,
        estimate=tool.estimate,
        leaves=tool.leaves,
        is_outside=tool.is_outside,
    )


def _what_it_takes(policy: Policy, name: str) -> str:
    """The sentence of the gate that leads to the level, as its author wrote it."""
    level: Level = policy.levels[name]
    gates = {gate.name: gate for gate in policy.gates}
    asked = [str(gates[gate].config.get("ask") or WHO_ARE_YOU) for gate in level.requires if gate in gates]
    return " ".join(asked) or WHO_ARE_YOU
