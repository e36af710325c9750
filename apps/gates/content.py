"""Check content that models are about to read for instructions: tool results, passages, memories, results of earlier
runs.

Gates with the trigger `on_content` check it, and `BUILT_IN` does so for every tenant. A hit marks the content but does
not withhold it: the model reads it, and the mark reduces what its turn or run may do without a person. A mark holds
names and codes, nothing of the content."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from apps.audit.enums import AuditEvent
from apps.gates.enums import GateAction, GateProvider, GateTrigger
from apps.gates.rules import MAX_TEXT
from apps.gates.schemas import AuditNote, GateSpec
from apps.gates.services.runner import check_gates
from kernel.stored_texts import stored_text

TOOL, DOCUMENT, MEMORY, FILE, LEFT = "tool", "document", "memory", "file", "left"
BUILT_IN = GateSpec(
    name="content_instructions", on=GateTrigger.ON_CONTENT, provider=GateProvider.CUSTOM, check="injection"
)
# Used instead of a gate's name: what was stored after a mark keeps the mark.
WRITTEN_AFTER = "written_after_a_mark"
_INSTRUCTED = {
    DOCUMENT: stored_text("A document read before this contained instructions to the assistant."),
    MEMORY: stored_text("A memory read before this contained instructions to the assistant."),
    FILE: stored_text("A file of the visitor read before this contained instructions to the assistant."),
    LEFT: stored_text("What an earlier run left contained instructions to the assistant."),
}


@dataclass(frozen=True)
class ContentMark:
    """What was read (`kind`, and the `name` of a tool), its call, document, memory or session (`ref`), and the gate
    that matched."""

    kind: str
    name: str
    ref: str
    gate: str

    @property
    def sentence(self) -> str:
        """A sentence for the card of an action that is prepared afterwards."""
        if self.kind in _INSTRUCTED:
            return _INSTRUCTED[self.kind]
        text = stored_text("The answer of {tool} read before this contained instructions to the assistant.")
        return text.format(tool=self.name)

    @property
    def note(self) -> AuditNote:
        data = {"gate": self.gate, "kind": self.kind, "ref": self.ref}
        return AuditEvent.CONTENT_MARKED, data | ({"tool": self.name} if self.kind == TOOL else {})


def check_content(
    value: object, gates: Iterable[GateSpec] = (), *, kind: str, name: str = "", ref: str
) -> ContentMark | None:
    """Check text or plain data; returns a mark if a gate matches. Only the first `MAX_TEXT` characters are checked. CPU
    work only, no database."""
    text = plain_text(value)[:MAX_TEXT]
    if not text.strip():
        return None
    due = [BUILT_IN, *(gate for gate in gates if gate.on == GateTrigger.ON_CONTENT)]
    report = check_gates(due, GateTrigger.ON_CONTENT, {"content": text, "tool_name": name})
    hit = next((result for result in report.policy if result.action != GateAction.CONTINUE), None)
    return None if hit is None else ContentMark(kind, name, ref, hit.gate_name)


def sentences(marks: Sequence[ContentMark]) -> tuple[str, ...]:
    """The marks' sentences without duplicates, in order."""
    return tuple(dict.fromkeys(mark.sentence for mark in marks))


def plain_text(value: object) -> str:
    """The strings of plain data, one per line, so that JSON quotes and escapes do not separate words."""
    return value if isinstance(value, str) else "\n".join(_within(_texts(value), MAX_TEXT))


def _within(texts: Iterator[str], room: int) -> Iterator[str]:
    for text in texts:
        if room <= 0:
            return
        yield text
        room -= len(text)


def _texts(value: object) -> Iterator[str]:
    """Keys and values in order. Iterative, so that deep nesting cannot overflow the stack."""
    stack = [value]
    while stack:
        item = stack.pop()
        if isinstance(item, str):
            yield item
        elif isinstance(item, Mapping):
            stack += [part for pair in reversed([*item.items()]) for part in reversed(pair)]
        elif isinstance(item, list | tuple):
            stack += reversed(item)
