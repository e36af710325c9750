"""Infer preferences from people's decisions and from ratings, from values alone.

The sentences are fixed here, so that nothing that a visitor or a model wrote becomes a preference (spec 6.6). No gate
and no approval reads them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from apps.suggestions.enums import OutcomeKind
from kernel.stored_texts import stored_text

LEAST, SHARE = 5, Fraction(3, 5)
# Families of preferences that are about no single tool: the drafts of a deployment, and its conversations.
DRAFTS, CONVERSATIONS = "drafts", "conversations"
# A rating of this many stars or fewer is low; of thumbs, down is 1.
LOW_RATING = 2
_NEWEST = 20
_SENTENCES: Mapping[OutcomeKind, tuple[str, str]] = {
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
_SHORTER = ("behavior:shorter", DRAFTS, stored_text("Colleagues usually cut drafts. Write shorter ones."))
_LOW_RATED = (
    "behavior:low-rated",
    CONVERSATIONS,
    stored_text("Customers often rate conversations low. Offer a colleague earlier."),
)


@dataclass(frozen=True)
class DecidedAction:
    """How people decided about one action. Lists hold the newest first. `person`: the id of who decided, or ""."""

    family: str
    kind: OutcomeKind
    shortened: bool = False
    person: str = ""


@dataclass(frozen=True)
class GivenRating:
    """A verified customer's rating, 1 to 5, without its words."""

    customer: str
    score: int


@dataclass(frozen=True)
class Pattern:
    """`samples`: the events looked at; `hits`: those that speak for it; `people`: how many persons those come from."""

    key: str
    family: str
    content: str
    samples: int
    hits: int
    people: int


def infer_patterns(actions: Sequence[DecidedAction], ratings: Sequence[GivenRating] = ()) -> list[Pattern]:
    """Patterns in the newest decisions of each family, in all drafts together, and in the newest ratings.

    None from fewer than five hits. A customer counts once, by their newest rating.
    """
    families = sorted({action.family for action in actions})
    patterns = [pattern for family in families for pattern in _family_patterns(family, actions)]
    drafts = [action for action in actions if action.kind is not OutcomeKind.DISMISSED][:_NEWEST]
    patterns += _pattern(*_SHORTER, [action.person for action in drafts if action.shortened], len(drafts))
    newest = list({rating.customer: rating for rating in reversed(ratings)}.values())[::-1][:_NEWEST]
    low = [rating.customer for rating in newest if rating.score <= LOW_RATING]
    return [*patterns, *_pattern(*_LOW_RATED, low, len(newest))]


def _family_patterns(family: str, actions: Iterable[DecidedAction]) -> list[Pattern]:
    newest = [action for action in actions if action.family == family][:_NEWEST]
    return [
        pattern
        for kind, (word, sentence) in _SENTENCES.items()
        for pattern in _pattern(
            f"behavior:{word}:{family}"[:120],
            family,
            sentence.format(family=family),
            [action.person for action in newest if action.kind is kind],
            len(newest),
        )
    ]


def _pattern(key: str, family: str, content: str, hits: Sequence[str], samples: int) -> list[Pattern]:
    """One pattern if the hits, given as who they come from, are enough."""
    if len(hits) < LEAST or Fraction(len(hits), samples) < SHARE:
        return []
    return [Pattern(key, family, content, samples, len(hits), people=len({person for person in hits if person}))]
