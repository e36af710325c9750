"""Content that models are about to read, looked at for instructions: what tools answer, passages of documents,
memories, and what another run left.

Gates of the trigger `on_content` look, and `BUILT_IN` looks for every tenant whether or not it has gates of its own. A
hit marks and never withholds: the model reads the content, and the mark lowers what its turn or run may do without a
person. A mark holds names and codes, nothing of the content.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from apps.audit.enums import AuditEvent
from apps.gates.enums import GateAction, GateProvider, GateTrigger
from apps.gates.rules import MAX_TEXT
from apps.gates.schemas import AuditNote, GateSpec
from apps.gates.services.runner import check_gates

TOOL, DOCUMENT, MEMORY, LEFT = "tool", "document", "memory", "left"
BUILT_IN = GateSpec(
    name="content_instructions", on=GateTrigger.ON_CONTENT, provider=GateProvider.CUSTOM, check="injection"
)
# In the place of a gate's name: what was written down after a mark keeps it, whatever it says.
WRITTEN_AFTER = "written_after_a_mark"
_READ = {DOCUMENT: "A document", MEMORY: "A memory", LEFT: "What an earlier run left"}


@dataclass(frozen=True)
class ContentMark:
    """What was read (`kind`, and the `name` of a tool), its call, document, memory or session (`ref`), and the gate
    that objected."""

    kind: str
    name: str
    ref: str
    gate: str

    @property
    def sentence(self) -> str:
        """The line for a card of what is prepared afterwards."""
        read = _READ.get(self.kind) or f"The answer of {self.name}"
        return f"{read} read before this contained instructions to the assistant."

    @property
    def note(self) -> AuditNote:
        data = {"gate": self.gate, "kind": self.kind, "ref": self.ref}
        return AuditEvent.CONTENT_MARKED, data | ({"tool": self.name} if self.kind == TOOL else {})


def check_content(
    value: Any, gates: Iterable[GateSpec] = (), *, kind: str, name: str = "", ref: str
) -> ContentMark | None:
    """The mark of content that some gate objects to. `value` is text or plain data; of a longer one only what a gate
    can read is judged. Computes; touches no database."""
    text = plain_text(value)[:MAX_TEXT]
    if not text.strip():
        return None
    due = [BUILT_IN, *(gate for gate in gates if gate.on == GateTrigger.ON_CONTENT)]
    report = check_gates(due, GateTrigger.ON_CONTENT, {"content": text, "tool_name": name})
    hit = next((result for result in report.policy if result.action != GateAction.CONTINUE), None)
    return None if hit is None else ContentMark(kind, name, ref, hit.gate_name)


def sentences(marks: Sequence[ContentMark]) -> tuple[str, ...]:
    """Each line once, in order."""
    return tuple(dict.fromkeys(mark.sentence for mark in marks))


def plain_text(value: Any) -> str:
    """The texts of plain data, each on its own line: no quotes or escapes of JSON between a word and its neighbours."""
    return value if isinstance(value, str) else "\n".join(_within(_texts(value), MAX_TEXT))


def _within(texts: Iterator[str], room: int) -> Iterator[str]:
    for text in texts:
        if room <= 0:
            return
        yield text
        room -= len(text)


def _texts(value: Any) -> Iterator[str]:
    """Keys and values in order; kept on a list of its own, so that no depth of nesting overflows."""
    waiting = [value]
    while waiting:
        each = waiting.pop()
        if isinstance(each, str):
            yield each
        elif isinstance(each, Mapping):
            waiting += [part for pair in reversed([*each.items()]) for part in reversed(pair)]
        elif isinstance(each, list | tuple):
            waiting += reversed(each)
