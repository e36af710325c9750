"""Everything that the models of a turn were shown, as sources of values (`kernel.provenance`, ADR 103).

Collected by the harness while the turn runs: messages as they were typed, passages with their documents, recalled
memories, and each tool's answer with its call. The bot's own words come from a model and are no source.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping

from apps.access.levels import KNOWLEDGE_TOOL
from apps.sessions.enums import Sender
from apps.sessions.queries import Said
from apps.sessions.state import Heard, TurnState
from apps.skills.outside_tools import WEB_SEARCH as SEARCH
from apps.skills.schemas import OutsideToolSpec, ToolSpec
from apps.work.provenance import Tracer
from kernel.http.addresses import host_of
from kernel.provenance import Origin, Source, Sources, Traced, as_text, clean_label, leaves
from llm.briefing import Passage, RecalledMemory

_SAID_BY = {Sender.VISITOR: Origin.VISITOR, Sender.HUMAN: Origin.STAFF}


def tracing_of(state: TurnState) -> Tracer:
    """What the values of this turn's plan are traced with; it was started by the message."""
    return Tracer(shown_to(state), _typed(state.message))


def shown_to(state: TurnState) -> Sources:
    """The sources that stood before the turn's models until now."""
    return Sources(tuple(_sources(state)))


def _sources(state: TurnState) -> Iterator[Source]:
    for entry in (*state.recent, state.message):
        if not entry.kept_out:
            yield Source(_typed(entry), entry.text)
    yield from (_passage(each) for each in state.passages)
    yield from (_recalled(each) for each in (*state.memories, *state.subscribed))
    tools = {tool.name: tool for tool in state.policy.tools}
    for heard in state.heard:
        yield from _heard(heard, tools.get(heard.tool))
    for name, reason in state.failures:
        if name != KNOWLEDGE_TOOL and (name not in tools or tools[name].is_outside):
            yield Source(Traced(Origin.TOOL, label=clean_label(name)), reason)


def _typed(entry: Said) -> Traced:
    origin = _SAID_BY.get(Sender(entry.sender), Origin.MODEL)
    return Traced(origin, f"seq:{entry.seq}", at=entry.at.isoformat() if entry.at else "")


def _passage(passage: Passage | Mapping[str, object]) -> Source:
    get = passage.get if isinstance(passage, Mapping) else lambda name: getattr(passage, name)
    ref = f"document:{get('document_id')}@{get('version_id')}"
    return Source(Traced(Origin.DOCUMENT, ref, clean_label(str(get("title")))), str(get("quote")))


def _recalled(memory: RecalledMemory) -> Source:
    return Source(Traced(Origin.MEMORY, f"memory:{memory.memory_id}", at=memory.said_at), memory.text)


def _heard(heard: Heard, tool: ToolSpec | None) -> Iterator[Source]:
    """A tool's answer. What the call handed to it is not the tool's: a tool that repeats a value did not bring it."""
    ref, given = f"call:{heard.done.call_id}", as_text(heard.args)
    value = heard.done.value
    if heard.tool == KNOWLEDGE_TOOL and isinstance(value, Mapping):
        yield from (_passage(each) for each in value.get("passages", ()) if isinstance(each, Mapping))
        return
    if tool is not None and not tool.is_outside:
        yield Source(Traced(Origin.RECORDS, ref, clean_label(heard.tool)), _told(value), given)
        return
    pages = value.get("pages") if heard.tool == SEARCH and isinstance(value, Mapping) else None
    for page in pages or ():
        yield Source(Traced(Origin.TOOL, ref, clean_label(_host(page.get("address")))), _told(page), given)
    if pages is None:
        private = tool is not None and not tool.leaves
        yield Source(Traced(Origin.TOOL, ref, _brought_by(heard, tool)), _told(value), given, is_private=private)


def _brought_by(heard: Heard, tool: ToolSpec | None) -> str:
    """The tool and its server, and the page that it was asked for."""
    server = tool.server if isinstance(tool, OutsideToolSpec) else ""
    asked = list(filter(None, (_host(each) for each in leaves(heard.args))))
    return clean_label(" ".join(filter(None, (heard.tool, f"of {server}" if server else "", ", ".join(asked[:1])))))


def _host(value: object) -> str:
    """The host that an address of the web names, or ""."""
    return host_of(value, schemes=("https", "http")) if isinstance(value, str) and "://" in value else ""


def _told(value: object) -> str:
    """The plain values line by line, and the answer as a model reads it."""
    return f"{as_text(value)}\n{json.dumps(value, ensure_ascii=False, default=str)}"
