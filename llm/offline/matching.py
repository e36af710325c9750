"""Match a message to a tool by the tool's keywords, its name and the ids its arguments take; a tie is no match.

Pure.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

from llm.briefing import ToolBrief
from llm.offline import arguments, values
from llm.offline.arguments import Kind
from llm.offline.intents import looks_like_question
from llm.offline.vocabulary import ACTIONS
from llm.offline.words import content, holds, stem, stems, words

_ACTIONS = frozenset(stem(word) for word in ACTIONS.split())


@dataclass(frozen=True)
class Match:
    """How well a tool fits a message.

    `strength`: words of meaning in the longest keyword found; `literal`: words of the longest one that stands there
    as it is ("my claim"); `coverage`: share of the message's words that the tool explains, 0 to 1; `only_id`: the
    message is nothing but an id; `asks`: it is a question; `other_action`: it wants something done that the tool does
    not.
    """

    tool: ToolBrief
    strength: int
    literal: int
    coverage: float
    has_id: bool
    only_id: bool
    asks: bool
    other_action: bool

    @property
    def is_strong(self) -> bool:
        if self.strength == 0 or (self.strength == 1 and self.other_action):
            return self.only_id
        return self.strength >= 2 or self.literal >= 2 or self.has_id or (self.coverage >= 0.5 and not self.asks)

    @property
    def rank(self) -> tuple[int, int, float, bool]:
        return self.strength, self.literal, self.coverage, self.has_id


def best_match(text: str, tools: Iterable[ToolBrief]) -> Match | None:
    """The tool that `text` means, when it means one strongly and no other as much."""
    best = best_matches(text, tools)
    return best[0] if len(best) == 1 else None


def best_matches(text: str, tools: Iterable[ToolBrief]) -> list[Match]:
    """The strong matches that nothing beats; several when the text does not tell them apart."""
    strong = [match_ for tool in tools if (match_ := match(text, tool)).is_strong]
    top = max((match_.rank for match_ in strong), default=None)
    return [match_ for match_ in strong if match_.rank == top]


def match(text: str, tool: ToolBrief) -> Match:
    phrases, known = _words_of(tool.name, tool.keywords, tool.description)
    said, plain = content(text), f" {' '.join(words(text))} "
    meaning = arguments.other_words(tool, text)
    explained = {word for word in meaning if holds(word, known)}
    found = has_id(text, tool)
    return Match(
        tool,
        strength=max((len(phrase) for phrase in phrases if all(holds(word, said) for word in phrase)), default=0),
        literal=max((len(words(keyword)) for keyword in tool.keywords if f" {keyword.lower()} " in plain), default=0),
        coverage=len(explained) / len(meaning) if meaning else 0.0,
        has_id=found,
        only_id=found and not meaning,
        asks=looks_like_question(text),
        other_action=not _ACTIONS.isdisjoint(meaning - explained),
    )


def has_id(text: str, tool: ToolBrief) -> bool:
    """Whether `text` holds an id that one of the tool's arguments takes."""
    schemas = arguments.properties(tool).items()
    ids = (schema["pattern"] for name, schema in schemas if arguments.kind_of(name, schema) is Kind.ID)
    return any(values.find_pattern(text, pattern) for pattern in ids)


@lru_cache(maxsize=512)
def _words_of(
    name: str, keywords: tuple[str, ...], description: str
) -> tuple[tuple[tuple[str, ...], ...], frozenset[str]]:
    """The words of each phrase that means the tool, and all of them together."""
    spoken = (*keywords, name.replace("_", " "), description)
    phrases = tuple(phrase for keyword in spoken if (phrase := tuple(content(keyword) or stems(keyword))))
    return phrases, frozenset(word for phrase in phrases for word in phrase)
