"""Steps 6 and 6.5: which tools may be asked for, and what is withheld at this level?

Two views of the same frozen list: what the level allows becomes a guarded toolset, the rest is named with what it
takes to get there. The guard checks the level again at every call.
"""

from __future__ import annotations

from typing import Any

from pydantic_ai.toolsets import AbstractToolset

from apps.guard.enums import Intent
from apps.guard.toolset import GuardedToolset, OfferedTool
from apps.sessions.access import Level
from apps.sessions.policy import KNOWLEDGE_TOOL
from apps.sessions.state import Stop, TurnState
from apps.skills.schemas import ToolSpec
from kernel.llm.briefing import ToolBrief, Withheld

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
    allowed = state.access.allowed_tools()
    own = tuple(brief(tool) for tool in state.policy.tools if tool.name in allowed)
    state.tools = (*own, KNOWLEDGE_BRIEF) if KNOWLEDGE_TOOL in allowed else own
    state.withheld = tuple(
        Withheld(brief(tool), level, _what_it_takes(state, level))
        for tool in state.policy.tools
        if (level := state.access.withholding_level(tool.name)) is not None
    )
    return None


def toolset_for(state: TurnState) -> AbstractToolset[Any]:
    """The allowed tools behind the guard; acting ones are planned and approved, never called from a conversation."""
    allowed = state.access.allowed_tools()
    tools = [_offered(tool) for tool in state.policy.tools if tool.name in allowed]
    if KNOWLEDGE_TOOL in allowed:
        tools.append(KNOWLEDGE_SEARCH)
    context = {
        "customer": state.access.subject,
        "levels": state.access.reached_levels(),
        "skills": state.policy.skills,
    }
    return GuardedToolset(
        state.run,
        tuple(tools),
        access=allowed,
        access_until=state.access.grant.expires_at,
        gates=state.policy.gates,
        context=context,
    )


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
        intent=Intent.RUN_SKILL,
        acting=tool.acting,
    )


def _what_it_takes(state: TurnState, name: str) -> str:
    """The sentence of the gate that leads to the level, as its author wrote it."""
    level: Level = state.policy.levels[name]
    gates = {gate.name: gate for gate in state.policy.gates}
    asked = [str(gates[gate].config.get("ask") or WHO_ARE_YOU) for gate in level.requires if gate in gates]
    return " ".join(asked) or WHO_ARE_YOU
