"""Infer preferences from people's decisions, from values alone.

The sentences are fixed here, so that nothing that a visitor or a model wrote becomes a preference (spec 6.6). No gate
and no approval reads them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction

from apps.suggestions.enums import OutcomeKind
from kernel.stored_texts import stored_text

LEAST, SHARE = 5, Fraction(3, 5)
_NEWEST = 20
_SENTENCES = {
    OutcomeKind.DECLINED: (
        "declined",
        stored_text("Colleagues usually decline “{family}”. Propose it only when someone asks for it."),
    ),
    OutcomeKind.EDIT_SELECTION: (
        "edited",
        stored_text("Colleagues usually change “{family}” before they approve it. Ask what they want first."),
    ),
    OutcomeKind.UNDO: (
        "undone",
        stored_text("Colleagues often undo “{family}”. Say clearly what it changes before it is done."),
    ),
    OutcomeKind.DISMISSED: (
        "dismissed",
        stored_text("Colleagues usually dismiss what is suggested of the kind “{family}”."),
    ),
}
_SHORTER = ("behavior:shorter", stored_text("Colleagues usually cut drafts. Write shorter ones."))


@dataclass(frozen=True)
class DecidedAction:
    """How people decided about one action. Lists hold the newest first."""

    family: str
    kind: OutcomeKind
    shortened: bool = False


@dataclass(frozen=True)
class Pattern:
    key: str
    content: str
    samples: int
    hits: int


def infer_patterns(actions: Sequence[DecidedAction]) -> list[Pattern]:
    """Patterns in the newest decisions of each family, and in all drafts together; none from fewer than five hits."""
    families = sorted({action.family for action in actions})
    patterns = [pattern for family in families for pattern in _family_patterns(family, actions)]
    drafts = [action for action in actions if action.kind is not OutcomeKind.DISMISSED][:_NEWEST]
    shortened = sum(action.shortened for action in drafts)
    if _is_usual(shortened, len(drafts)):
        patterns.append(Pattern(*_SHORTER, len(drafts), shortened))
    return patterns


def _family_patterns(family: str, actions: Iterable[DecidedAction]) -> list[Pattern]:
    newest = [action for action in actions if action.family == family][:_NEWEST]
    return [
        Pattern(f"behavior:{word}:{family}"[:120], sentence.format(family=family), len(newest), hits)
        for kind, (word, sentence) in _SENTENCES.items()
        if _is_usual(hits := sum(action.kind is kind for action in newest), len(newest))
    ]


def _is_usual(hits: int, samples: int) -> bool:
    return hits >= LEAST and Fraction(hits, samples) >= SHARE
