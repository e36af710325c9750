"""Which tool does a message mean? By its keywords, its name and the ids its arguments take; a tie means nobody
knows. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from kernel.llm.briefing import ToolBrief
from kernel.llm.grounded import arguments, values
from kernel.llm.grounded.arguments import Kind
from kernel.llm.grounded.words import content, holds, stems


@dataclass(frozen=True)
class Match:
    """`strength`: words of the longest keyword found. `coverage`: share of the message's words the tool explains, 0
    to 1.
    """

    tool: ToolBrief
    strength: int
    coverage: float
    has_id: bool

    @property
    def is_strong(self) -> bool:
        return self.strength >= 2 or (self.strength == 1 and (self.coverage >= 0.5 or self.has_id))

    @property
    def rank(self) -> tuple[bool, int, float, bool]:
        return self.is_strong, self.strength, self.coverage, self.has_id


def best_match(text: str, tools: Iterable[ToolBrief]) -> Match | None:
    """The tool that `text` means, when it means one strongly and no other as much."""
    ranked = sorted((match(text, tool) for tool in tools), key=lambda found: found.rank, reverse=True)
    if not ranked or not ranked[0].is_strong:
        return None
    if len(ranked) > 1 and ranked[1].rank == ranked[0].rank:
        return None
    return ranked[0]


def match(text: str, tool: ToolBrief) -> Match:
    said = content(text)
    strength = max((_strength(phrase, said) for phrase in _phrases(tool)), default=0)
    known = _vocabulary(tool)
    meaning = arguments.says_more(tool, text)
    explained = sum(holds(word, known) for word in meaning)
    return Match(tool, strength, explained / len(meaning) if meaning else 0.0, has_id(text, tool))


def has_id(text: str, tool: ToolBrief) -> bool:
    """Whether `text` holds an id that one of the tool's arguments takes."""
    schemas = arguments.properties(tool).items()
    ids = (schema["pattern"] for name, schema in schemas if arguments.kind_of(name, schema) is Kind.ID)
    return any(values.find_pattern(text, pattern) for pattern in ids)


def _phrases(tool: ToolBrief) -> tuple[str, ...]:
    return (*tool.keywords, tool.name.replace("_", " "))


def _strength(phrase: str, said: list[str]) -> int:
    """How many words of meaning `phrase` has, if the text says them all."""
    needed = content(phrase) or stems(phrase)
    return len(needed) if needed and all(holds(word, said) for word in needed) else 0


def _vocabulary(tool: ToolBrief) -> set[str]:
    return set(content(" ".join((*_phrases(tool), tool.description))))
