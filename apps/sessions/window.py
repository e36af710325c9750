"""Lay out the context window of one turn as items of the four zones, for `llm.context.rules` to judge. Pure.

An item's id says where its text is kept (`seq:` an entry of the chronicle, `passage:` a place in a document version);
for text that may change meanwhile it begins with its hash (`persona:`, `work:`, `tool:`), so that a record of a window
needs no text. Called by step 5, by step 6 for the weight of tools, and by the closing for the record.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any
from uuid import UUID

from django.conf import settings

from apps.sessions.queries import Said
from apps.sessions.state import TurnState
from apps.skills import roles
from apps.skills.roles import Metadata
from apps.skills.schemas import ToolSpec
from kernel.canonical import sha256_hex
from kernel.taint import Taint
from llm.attachments import Attachment
from llm.briefing import Passage, RecalledMemory, SkillBrief, ToolBrief
from llm.context.budget import TokenBudget, count_tokens
from llm.context.enums import Kind, Reason, Zone
from llm.context.items import FRAME_TOKENS, RECORDED_EVICTIONS, ContextItem

# A tenth for the tools: of this smaller window it is about what 2 % are of the specification's.
BUDGET = TokenBudget(total_tokens=settings.CONTEXT_TOKENS, skill_metadata_budget_pct=0.10)
# Of names and descriptions of skills, what the specification says: 2 %.
SKILLS = TokenBudget(total_tokens=settings.CONTEXT_TOKENS)
# What the role itself is told in front of everything (`llm.render`), rounded up.
ROLE_TOKENS = 500


def laid_out(state: TurnState) -> tuple[tuple[ContextItem, ...], dict[str, Any]]:
    """Everything that could stand in the window, and by what it is judged (arguments of `rules.enforce_budget`)."""
    return tuple(_items(state)), {
        "budget": BUDGET,
        "profile": state.focus.profile,
        "turn": state.message.seq,
        "reserved": ROLE_TOKENS
        + min(BUDGET.metadata_tokens, sum(map(weight, state.policy.tools)))
        + sum(skill.tokens for skill in skills_for_proxy(state)),
    }


def skills_for_proxy(state: TurnState) -> tuple[Metadata, ...]:
    """Name and description of the skills of this turn, within their part of the window (spec 10.3)."""
    return roles.proxy_view(state.policy.known, budget=SKILLS.metadata_tokens)


def id_of_entry(entry: Said) -> str:
    return f"seq:{entry.seq}"


def id_of_passage(passage: Passage) -> str:
    return f"passage:{passage.version_id}:{passage.start}-{passage.end}"


def id_of_memory(memory: RecalledMemory) -> str:
    return f"memory:{memory.memory_id}"


def id_of_file(file: Attachment) -> str:
    return f"file:{file.file_id}"


def call_reference(call_id: UUID) -> str:
    """Under which memory keeps what a guarded call answered."""
    return f"call:{call_id}"


def tags_of(skill: str) -> tuple[str, ...]:
    """Under which tags memory keeps what the tools of this skill answered; none for what is of no skill. A name may be
    longer than a tag."""
    return (f"skill:{sha256_hex(skill)[:32]}",) if skill else ()


def id_of_words(kind: str, words: str) -> str:
    """Identify a text that may be edited, to tell whether it has changed since."""
    return f"{kind}:{sha256_hex(words)[:16]}"


def id_of_tool(kind: str, tool: ToolBrief | ToolSpec) -> str:
    return id_of_words(f"{kind}:{tool.name}", words_of(tool))


def words_of(tool: ToolBrief | ToolSpec) -> str:
    """What a model is told of a tool besides its name and arguments."""
    return "\n".join([tool.description, *(f"{name}: {question}" for name, question in tool.ask.items())])


def record_of(state: TurnState) -> dict[str, object] | None:
    """What the turn's model saw, as ids, marks and counts: the window, and the tools it was told of or not."""
    if state.window is None:
        return None
    record = state.window.record()
    told, left = _tools(state)
    told += _skills(state)
    record["zones"][Zone.SYSTEM.value]["items"] += told
    record["evicted"] += left
    record["evicted_count"] += len(left)
    marks: dict[str, object] = {"untold": state.untold, "rewritten": state.text != state.message.text}
    marks["release"] = state.settings.number
    marks["prompts"] = list(state.prompts)
    return record | {"level": state.access.grant.level, "fixed": ROLE_TOKENS} | marks


def _tools(state: TurnState) -> tuple[list[dict[str, object]], list[dict[str, object]]]:
    """Those told of, and those that found no room; a turn that stopped before step 6 told of none."""
    if not state.tools:
        return [], []
    named = {tool.name for tool in state.tools}
    held = {each.tool.name for each in state.withheld}
    told = [_tool("tool", tool) for tool in state.tools] + [_tool("withheld", each.tool) for each in state.withheld]
    full = {"zone": Zone.SYSTEM.value, "reason": Reason.METADATA_FULL.value}
    reach = (tool for tool in state.policy.tools if tool.name not in named | held and _in_reach(state, tool.name))
    return told, [_tool("tool", tool) | full for tool in islice(reach, RECORDED_EVICTIONS)]


def _skills(state: TurnState) -> list[dict[str, object]]:
    """What the proxy was told of the skills, and whose instructions the planner read."""
    return [
        {
            "id": id_of_skill(skill),
            "kind": Kind.SYSTEM.value,
            "tokens": count_tokens(skill.instructions or skill.description),
            "taint": Taint.AUTH.value,
            "pinned": True,
        }
        for skill in (*state.skills, *state.taught)
    ]


def id_of_skill(skill: SkillBrief) -> str:
    return id_of_words(f"skill:{skill.name}", skill.instructions or skill.description)


def _in_reach(state: TurnState, name: str) -> bool:
    return name in state.access.allowed_tools() or state.access.withholding_level(name) is not None


def _tool(kind: str, tool: ToolBrief | ToolSpec) -> dict[str, object]:
    told = {"id": id_of_tool(kind, tool), "kind": Kind.SYSTEM.value, "tokens": weight(tool), "taint": Taint.AUTH.value}
    return told | {"pinned": True}


def weight(tool: ToolBrief | ToolSpec) -> int:
    """Model tokens of a tool's lines in a prompt."""
    return FRAME_TOKENS + count_tokens(tool.name + tool.description + "".join(tool.ask.values()))


def _items(state: TurnState) -> Iterator[ContextItem]:
    yield _system("persona", state.settings.persona)
    if state.tone is not None:
        content = state.tone.text
        yield ContextItem(f"tone:{state.tone.levels}", Zone.SYSTEM, Kind.SYSTEM, content, taint=Taint.AUTH, pinned=True)
    yield from (_system("work", title) for title in state.open_work)
    yield from (_message(entry._replace(text=entry.shown)) for entry in state.recent)
    yield _message(state.message._replace(text=state.text), pinned=True)
    yield from (_passage(passage) for passage in state.passages)
    yield from (_file(file) for file in state.attachments)
    yield from (_memory(memory) for memory in state.memories)
    yield from (_subscribed(memory, state.message.seq) for memory in state.subscribed)


def _system(kind: str, content: str) -> ContextItem:
    return ContextItem(id_of_words(kind, content), Zone.SYSTEM, Kind.SYSTEM, content, taint=Taint.AUTH, pinned=True)


def _message(entry: Said, *, pinned: bool = False) -> ContextItem:
    """Messages are as old as their place in the conversation."""
    return ContextItem(
        id_of_entry(entry),
        Zone.CHRONICLE,
        Kind.MESSAGE,
        entry.text,
        turn=entry.seq,
        source=entry.sender,
        taint=Taint(entry.taint),
        pinned=pinned,
    )


def _passage(passage: Passage) -> ContextItem:
    return ContextItem(
        id_of_passage(passage), Zone.MEMORY, Kind.MEMORY, passage.quote, source="knowledge", relevance=passage.score
    )


def _file(file: Attachment) -> ContextItem:
    return ContextItem(id_of_file(file), Zone.MEMORY, Kind.MEMORY, file.text or file.name, source="file", relevance=1.0)


def _memory(memory: RecalledMemory) -> ContextItem:
    """What a person confirmed stays; nothing else can be pinned from memory."""
    return ContextItem(
        id_of_memory(memory),
        Zone.MEMORY,
        Kind.MEMORY,
        memory.text,
        source="memory",
        taint=memory.taint,
        relevance=memory.score,
        pinned=memory.trust != "working",
    )


def _subscribed(memory: RecalledMemory, turn: int) -> ContextItem:
    return ContextItem(
        id_of_memory(memory),
        Zone.WORKSPACE,
        Kind.SUBSCRIPTION,
        memory.text,
        turn=turn,
        source="memory",
        taint=memory.taint,
    )
