"""Which way to behave do people's decisions speak for? Decided from values alone; the sentences are ours, so that
nothing a visitor or a model wrote becomes a habit (spec 6.6). Never policy: no gate and no approval reads any of it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction

from apps.autonomy.enums import OutcomeKind

LEAST, SHARE = 5, Fraction(3, 5)
_NEWEST = 20
_SAYS = {
    OutcomeKind.DECLINED: ("declined", "Colleagues usually decline “{family}”. Propose it only when somebody asks."),
    OutcomeKind.EDIT_SELECTION: (
        "edited",
        "Colleagues usually change “{family}” before a yes. Ask what they want first.",
    ),
    OutcomeKind.UNDO: ("undone", "Colleagues often undo “{family}”. Say clearly what it changes before it is done."),
    OutcomeKind.DISMISSED: ("dismissed", "Colleagues usually dismiss what is suggested of the kind “{family}”."),
}
_SHORTER = ("behavior:shorter", "Colleagues usually cut drafts. Write shorter ones.")


@dataclass(frozen=True)
class DecidedAction:
    """How one action was taken, newest first in any list."""

    family: str
    kind: OutcomeKind
    shortened: bool = False


@dataclass(frozen=True)
class Pattern:
    key: str
    content: str
    samples: int
    hits: int


def infer_patterns(taken: Sequence[DecidedAction]) -> list[Pattern]:
    """Patterns in the newest decisions of each family, and in all drafts together; none from fewer than five."""
    found = [pattern for family in sorted({each.family for each in taken}) for pattern in _of(family, taken)]
    drafts = [each for each in taken if each.kind is not OutcomeKind.DISMISSED][:_NEWEST]
    cut = sum(each.shortened for each in drafts)
    if _is_usual(cut, len(drafts)):
        found.append(Pattern(*_SHORTER, len(drafts), cut))
    return found


def _of(family: str, taken: Iterable[DecidedAction]) -> list[Pattern]:
    newest = [each for each in taken if each.family == family][:_NEWEST]
    return [
        Pattern(f"behavior:{word}:{family}"[:120], says.format(family=family), len(newest), hits)
        for kind, (word, says) in _SAYS.items()
        if _is_usual(hits := sum(each.kind is kind for each in newest), len(newest))
    ]


def _is_usual(hits: int, samples: int) -> bool:
    return hits >= LEAST and Fraction(hits, samples) >= SHARE
