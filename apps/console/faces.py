"""How does a card face the person before it? Its buttons in order, their words, and what a yes takes. Pure.

The recommended answer comes first and stands out, the no comes last and stands back; words say what will happen
(spec 0.5.3). The gesture shows that somebody meant it and is no authorisation.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from apps.approvals.cards import kinds, risk
from apps.approvals.cards.risk import Friction
from apps.approvals.enums import ApprovalVerdict, CardKind, Risk
from apps.approvals.models import Card

# Kinds whose own words are a whole answer; to the others the button says Approve or Decline first.
_SPEAKS_FOR_ITSELF = frozenset(
    {
        CardKind.GATE,
        CardKind.DECISION,
        CardKind.SUGGESTION,
        CardKind.POST_EXECUTION,
        CardKind.CONNECTION_FAILURE,
    }
)
_VERBS = {kinds.APPROVE: "Approve", kinds.DECLINE: "Decline"}
_KEYS = {kinds.APPROVE: ("a", "approve"), kinds.DECLINE: ("d", "decline")}
# A result comes up by itself where somebody has just pressed A: what undoes has a key of its own.
_KEYS_OF_RESULTS = {kinds.APPROVE: ("u", "undo"), kinds.DECLINE: ("d", "keep")}
# What stands first has the first key: the whole of a mixed batch is approved with a look and a hand.
SELECTION = "edit_selection"
_KEYS_OF_MIXED = {SELECTION: ("a", "approve the ticked"), kinds.DECLINE: ("d", "decline")}


@dataclass(frozen=True)
class Button:
    """`words` are whole; `is_yes`: it needs the gesture of the card's rung; `key`: the letter that presses it, and
    `hint` what that does in a word."""

    value: str
    words: str
    is_yes: bool
    key: str
    hint: str
    place: str


def buttons_of(card: Card) -> list[Button]:
    """The answers that this card takes, as buttons in their order; of a batch with unusual lines the ticked ones are
    recommended (spec 0.5.4)."""
    choices = list(kinds.choices_for(card.kind, card.payload))
    if is_mixed(card):
        choices.sort(key=lambda choice: choice.value != SELECTION)
    return [_button(card, place, each) for place, each in enumerate(choices)]


def is_mixed(card: Card) -> bool:
    """Is this a batch of which some lines deviate from the pattern?"""
    return card.kind == CardKind.BATCH_REVIEW and any(item.get("unusual") for item in card.body.get("items", ()))


def _button(card: Card, number: int, choice: kinds.Choice) -> Button:
    keys = _KEYS_OF_RESULTS if card.kind == CardKind.POST_EXECUTION else _KEYS_OF_MIXED if is_mixed(card) else _KEYS
    key, hint = keys.get(choice.value, ("", ""))
    return Button(
        choice.value,
        _words(card, choice.value),
        is_yes=_is_yes(card, choice),
        key=key,
        hint=hint,
        place="first" if choice.value == SELECTION and number == 0 else _place(number, choice),
    )


def _place(number: int, choice: kinds.Choice) -> str:
    """Wanting it otherwise is nobody's recommendation."""
    if number == 0 and choice.verdict != ApprovalVerdict.EDIT_REQUESTED:
        return "first"
    return "last" if choice.value == kinds.DECLINE else "middle"


def _is_yes(card: Card, choice: kinds.Choice) -> bool:
    return choice.verdict == ApprovalVerdict.APPROVED and kinds.get_kind(card.kind).binds


def _words(card: Card, value: str) -> str:
    said = str(card.consequence.get(value, ""))
    verb = "" if card.kind in _SPEAKS_FOR_ITSELF else _VERBS.get(value, "")
    if not verb:
        return said
    rest = said.removeprefix("Approve, ").removeprefix("Decline, ")
    return f"{verb}, {rest if rest[1:2].isupper() else rest[:1].lower() + rest[1:]}" if rest else verb


def confirming(words: str) -> str:
    """What the same button says the second time."""
    return f"Confirm, {words.partition(', ')[2]}" if words.startswith("Approve, ") else f"Confirm: {words}"


def answered(card: Card) -> str:
    """What was answered to a decided card: yes, no, or the chosen words."""
    chosen = str(card.decision.said.get("choice", ""))
    if card.decision.verdict == ApprovalVerdict.EDIT_REQUESTED and chosen in ("", "edit", "edit_selection"):
        return "asked anew"
    if not chosen or (card.kind not in _SPEAKS_FOR_ITSELF and chosen in (kinds.APPROVE, kinds.DECLINE)):
        return "approved" if card.decision.verdict == ApprovalVerdict.APPROVED else "declined"
    return f"“{card.consequence.get(chosen, chosen)}”"


def told(card: Card) -> str:
    """What the page says after the press: what was answered, and what happens now."""
    words = answered(card)
    after = {"approved": " It runs now.", "declined": " Nothing changes."}.get(words, "")
    return f"{words[:1].upper()}{words[1:]}: {card.intent}.{after}"


def gesture(card: Card, button: Button) -> Friction:
    """What this press takes here; the passkey is asked for where the yes is signed."""
    return risk.friction_for(Risk(card.risk), has_passkey=False) if button.is_yes else Friction.TAP


def density(waiting: Iterable[Card], many: int) -> list[tuple[str, int]]:
    """How many cards of each graver risk wait, once there are many; a cue, and nothing waits for it (spec 0.5.4)."""
    grave = [Risk(card.risk) for card in waiting if card.risk != Risk.LOW]
    found = [(str(one.label).lower(), grave.count(one)) for one in reversed(Risk) if one in grave]
    return found if len(grave) >= many else []
