"""Reconstruct what the model of a turn saw: the record of its window, with each text looked up where it is kept.

Nothing is stored for this page alone: a text that was deleted or changed since is gone from here too, and its item says
so (`text` None). Reads only, inside the tenant's scope, for staff who may read the conversation as a whole.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple
from uuid import UUID

from apps.guard.enums import Intent
from apps.guard.models import ToolCall
from apps.knowledge.queries import read_quotes
from apps.memory.enums import ScopeKind
from apps.memory.recall import memories_of, memory_texts
from apps.memory.schemas import Scope
from apps.persona import directives
from apps.releases.queries import personas_of
from apps.sessions import policy, window
from apps.sessions.models import ChatSession, Turn
from apps.sessions.queries import file_names, messages_at, scopes_about
from apps.sessions.steps.tools import KNOWLEDGE_BRIEF
from apps.skills import roles
from apps.skills.schemas import ToolSpec
from apps.work.queries import work_items
from kernel.errors import NotFound
from llm.briefing import SkillBrief, ToolBrief
from llm.context.enums import Zone
from llm.enums import MemoryType

# The source of a memory that is a preference of the company.
PREFERENCE = "preference"


class Kept(NamedTuple):
    """A text where it is kept, and whose or what it is."""

    source: str
    text: str


@dataclass(frozen=True)
class SeenItem:
    """One block of a window. `place` is the first word of its id; `reason` why it left or was replaced, else ""."""

    ctx_id: str
    kind: str
    tokens: int
    taint: str
    masked: bool = False
    pinned: bool = False
    reason: str = ""
    source: str = ""
    text: str | None = None

    @property
    def place(self) -> str:
        return self.ctx_id.partition(":")[0]

    @property
    def name(self) -> str:
        """The second word of its id: a message's number, a tool's name."""
        return self.ctx_id.split(":")[1] if ":" in self.ctx_id else ""


@dataclass(frozen=True)
class SeenCall:
    """A tool that the model called while it answered. `answer` is what memory kept of it, None when it has nothing."""

    tool: str
    answer: str | None


@dataclass(frozen=True)
class SeenZone:
    """`fixed` are model tokens that no item stands for; `more` how many items the record only counts."""

    name: str
    tokens: int
    room: int
    items: tuple[SeenItem, ...]
    left: tuple[SeenItem, ...]
    fixed: int = 0
    more: int = 0


@dataclass(frozen=True)
class SeenWindow:
    """`calls` are the tools that its model called; `rewritten`: a gate reworded the message before the model read
    it."""

    profile: str
    level: str
    zones: tuple[SeenZone, ...]
    headroom: int
    left_count: int
    rewritten: bool
    release: int = 0
    calls: tuple[SeenCall, ...] = field(default=())

    @property
    def tokens(self) -> int:
        return sum(zone.tokens for zone in self.zones)


def last_attempt(session_id: UUID, *, number: int) -> Turn:
    """The attempt of a turn that counts: the last that had a window, or the last. Raises `NotFound`, also for a foreign
    one."""
    rows = Turn.objects.filter(session_id=session_id, number=number).select_related("session__deployment", "release")
    tried: list[Turn] = list(rows.order_by("-started_at"))
    if not tried:
        raise NotFound()
    return next((turn for turn in tried if turn.context is not None), tried[0])


def seen_in(turn: Turn) -> SeenWindow | None:
    """None for a turn that ended before a window was laid out."""
    return None if turn.context is None else seen_of(turn.session, turn.context, calls=_calls(turn.session, turn))


def seen_of(session: ChatSession, record: Mapping[str, Any], *, calls: tuple[SeenCall, ...] = ()) -> SeenWindow:
    """The window of a record about this conversation."""
    left = record["evicted"]
    items = [each for zone in record["zones"].values() for each in zone["items"]]
    kept = _texts(session, [each["id"] for each in (*items, *left)])
    return SeenWindow(
        profile=record["profile"],
        level=record.get("level", ""),
        zones=tuple(_zone(zone.value, record, kept) for zone in Zone),
        headroom=record["headroom"],
        left_count=record["evicted_count"],
        rewritten=record.get("rewritten", False),
        release=record.get("release", 0),
        calls=calls,
    )


def _zone(name: str, record: Mapping[str, Any], kept: Mapping[str, Kept]) -> SeenZone:
    zone = record["zones"][name]
    items = tuple(_item(each, kept) for each in zone["items"])
    masked = {each.ctx_id for each in items if each.masked}
    left = (_item(each, kept) for each in record["evicted"] if each.get("zone") == name)
    return SeenZone(
        name,
        zone["tokens"],
        zone["room"],
        items,
        tuple(each for each in left if each.ctx_id not in masked),
        fixed=record.get("fixed", 0) if name == Zone.SYSTEM else 0,
        more=max(zone["count"] - len(items), 0),
    )


def _item(told: Mapping[str, Any], kept: Mapping[str, Kept]) -> SeenItem:
    """A record of a version before may lack a mark."""
    found = kept.get(told["id"])
    return SeenItem(
        ctx_id=told["id"],
        kind=told.get("kind", ""),
        tokens=told["tokens"],
        taint=told.get("taint", "external"),
        masked=told.get("masked", False),
        pinned=told.get("pinned", False),
        reason=told.get("reason", ""),
        source=found.source if found else "",
        text=found.text if found else None,
    )


def _texts(session: ChatSession, ids: Iterable[str]) -> dict[str, Kept]:
    """What is kept of these ids, by id; each place is asked once."""
    by_place: dict[str, list[str]] = {}
    for each in ids:
        by_place.setdefault(each.partition(":")[0], []).append(each)
    found: dict[str, Kept] = {}
    for place, wanted in by_place.items():
        if place in _PLACES:
            found |= _PLACES[place](session, wanted)
    return found


def _messages(session: ChatSession, ids: list[str]) -> dict[str, Kept]:
    seqs = [int(each.removeprefix("seq:")) for each in ids if each.removeprefix("seq:").isdecimal()]
    said = messages_at(session.pk, seqs)
    return {f"seq:{each.seq}": Kept(each.sender, each.shown) for each in said}


def _passages(session: ChatSession, ids: list[str]) -> dict[str, Kept]:
    found = read_quotes([each.removeprefix("passage:") for each in ids])
    return {f"passage:{name}": Kept(title, quote) for name, (title, quote) in found.items()}


def _files(session: ChatSession, ids: list[str]) -> dict[str, Kept]:
    """Their names; a file itself is opened from the conversation."""
    return {f"file:{pk}": Kept("", name) for pk, name in file_names(session.pk, {each[5:] for each in ids}).items()}


def _memories(session: ChatSession, ids: list[str]) -> dict[str, Kept]:
    """Of the conversation's scope, of its current customer's, and of the company's."""
    scopes = [*scopes_about(session), Scope(ScopeKind.TENANT, str(session.tenant_id))]
    texts = memory_texts(scopes, [UUID(each.removeprefix("memory:")) for each in ids])
    sources = {MemoryType.PREFERENCE: PREFERENCE}
    return {f"memory:{pk}": Kept(sources.get(MemoryType(kind), ""), text) for pk, (kind, text) in texts.items()}


def _persona(session: ChatSession, ids: list[str]) -> dict[str, Kept]:
    """Of the working copy and of every release: the id tells which."""
    texts = [session.deployment.persona, *personas_of(session.deployment_id)]
    return {window.id_of_words("persona", words): Kept("", words) for words in texts}


def _tones(session: ChatSession, ids: list[str]) -> dict[str, Kept]:
    """The id holds the levels of the axes, and these the sentences."""
    return {each: Kept("", directives.render(each.removeprefix("tone:"))) for each in ids}


def _work(session: ChatSession, ids: list[str]) -> dict[str, Kept]:
    titles = work_items(session_id=session.pk).values_list("title", flat=True)
    return {window.id_of_words("work", title): Kept("", title) for title in titles}


def _tools(session: ChatSession, ids: list[str]) -> dict[str, Kept]:
    tools: tuple[ToolBrief | ToolSpec, ...] = (KNOWLEDGE_BRIEF, *policy.load(session.deployment).tools)
    kinds = ("tool", "withheld")
    return {window.id_of_tool(kind, tool): Kept(tool.name, window.words_of(tool)) for tool in tools for kind in kinds}


def _skills(session: ChatSession, ids: list[str]) -> dict[str, Kept]:
    """Told by description to the proxy, and by its instructions, as they are today, to the planner."""
    known = policy.load(session.deployment).known
    told = [SkillBrief(skill.name, skill.metadata.description) for skill in known]
    told += roles.planner_view(known)
    return {window.id_of_skill(each): Kept(each.name, each.instructions or each.description) for each in told}


_PLACES: Mapping[str, Callable[[ChatSession, list[str]], dict[str, Kept]]] = {
    "seq": _messages,
    "passage": _passages,
    "file": _files,
    "memory": _memories,
    "persona": _persona,
    "tone": _tones,
    "work": _work,
    "tool": _tools,
    "withheld": _tools,
    "skill": _skills,
}


def _calls(session: ChatSession, turn: Turn) -> tuple[SeenCall, ...]:
    """The tools that were called while the turn ran: the conversation has one run, and one turn at a time."""
    if session.run_id is None or turn.finished_at is None:
        return ()
    rows = ToolCall.objects.filter(run_id=session.run_id, created_at__range=(turn.started_at, turn.finished_at))
    calls = list(rows.exclude(intent=Intent.CONVERSE).order_by("seq").values_list("pk", "tool"))
    kept = memories_of(scopes_about(session)).filter(reference__in=[window.call_reference(pk) for pk, _ in calls])
    answers = dict(kept.values_list("reference", "content"))
    return tuple(SeenCall(tool, answers.get(window.call_reference(pk))) for pk, tool in calls)
