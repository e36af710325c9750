"""How a card is presented: its buttons in order with their labels, and the messages around a decision. Pure.

The recommended answer comes first and is prominent, declining comes last and is quiet; labels say what will happen
(spec 0.5.3). The gesture guards against accidents and is no authorisation.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, pgettext

from apps.approvals.cards import kinds, risk
from apps.approvals.cards.risk import Friction
from apps.approvals.enums import ApprovalVerdict, CardStatus, Risk
from apps.approvals.models import Card
from apps.console.labels import inline_label, inline_start
from kernel.stored_texts import show_stored

_VERBS = {kinds.APPROVE: gettext_lazy("Approve"), kinds.DECLINE: gettext_lazy("Decline")}
_VERBS_BEFORE_CONSEQUENCE = {
    kinds.APPROVE: gettext_lazy("Approve, %(consequence)s"),
    kinds.DECLINE: gettext_lazy("Decline, %(consequence)s"),
}


@dataclass(frozen=True)
class Button:
    """A button of a card.

    `confirmation` is its label when it asks for confirmation; `approves` is true if pressing it needs the gesture of
    the card's risk; `key` is its keyboard shortcut and `hint` a word for what the key does; `place` is `first`,
    `middle` or `last`.
    """

    value: str
    label: str
    confirmation: str
    approves: bool
    key: str
    hint: str
    place: str


def buttons_of(card: Card) -> list[Button]:
    """Return the answers of the card as buttons."""
    shortcuts = card.of_kind.shortcuts_on(card)
    return [
        _button(card, position, choice, *shortcuts.get(choice.value, ("", "")))
        for position, choice in enumerate(card.of_kind.choices_on(card))
    ]


def _button(card: Card, position: int, choice: kinds.Choice, key: str, hint: str | Promise) -> Button:
    label, confirmation = _labels(card, choice.value)
    return Button(
        choice.value,
        label,
        confirmation,
        approves=choice.verdict == ApprovalVerdict.APPROVED and card.of_kind.binds,
        key=key,
        hint=str(hint),
        place="first" if position == 0 else "last" if choice.value == kinds.DECLINE else "middle",
    )


def _labels(card: Card, value: str) -> tuple[str, str]:
    """Return the label of a button, and its label when it asks for confirmation."""
    consequence = show_stored(card.consequence.get(value, ""))
    label = consequence
    if value in _VERBS and not card.of_kind.labels_are_complete:
        rest = show_stored(_without_verb(str(card.consequence.get(value, ""))))
        rest = rest if rest[1:2].isupper() else inline_start(rest)
        label = str(_VERBS_BEFORE_CONSEQUENCE[value]) % {"consequence": rest} if rest else str(_VERBS[value])
        if rest and value == kinds.APPROVE:
            return label, _("Confirm, %(consequence)s") % {"consequence": rest}
    elif label.startswith("Approve, "):
        return label, _("Confirm, %(consequence)s") % {"consequence": show_stored(_without_verb(label))}
    return label, _("Confirm: %(label)s") % {"label": label}


def _without_verb(consequence: str) -> str:
    return consequence.removeprefix("Approve, ").removeprefix("Decline, ")


def answer_in_words(card: Card) -> str:
    """Return the answer to a decided card: approved, declined, resubmitted, or the label of the chosen answer."""
    match _plain_answer(card):
        case ApprovalVerdict.APPROVED:
            return pgettext("a card", "approved")
        case ApprovalVerdict.DECLINED:
            return pgettext("a card", "declined")
        case ApprovalVerdict.EDIT_REQUESTED:
            return pgettext("a card", "resubmitted")
        case _:
            chosen = str(card.decision.said.get("choice", ""))
            return f"“{show_stored(card.consequence.get(chosen, chosen))}”"


def _plain_answer(card: Card) -> ApprovalVerdict | None:
    """Return the verdict of a decided card, or None for an answer that has a label of its own."""
    chosen, verdict = str(card.decision.said.get("choice", "")), ApprovalVerdict(card.decision.verdict)
    if verdict == ApprovalVerdict.EDIT_REQUESTED and chosen in ("", "edit", "edit_selection"):
        return verdict
    if not chosen or (not card.of_kind.labels_are_complete and chosen in (kinds.APPROVE, kinds.DECLINE)):
        return ApprovalVerdict.APPROVED if verdict == ApprovalVerdict.APPROVED else ApprovalVerdict.DECLINED
    return None


def decision_message(card: Card) -> str:
    """Return the message after a decision: the answer, and what happens now."""
    answer, plain = answer_in_words(card), _plain_answer(card)
    after = {ApprovalVerdict.APPROVED: _("It is running now."), ApprovalVerdict.DECLINED: _("Nothing was changed.")}
    message = _("%(answer)s: %(intent)s.") % {"answer": answer[:1].upper() + answer[1:], "intent": card.intent}
    return f"{message} {after[plain]}" if plain in after else message


def decline_reason(card: Card) -> str:
    """Return why the card was declined: the reason, and the note for colleagues. Empty without either."""
    if card.status != CardStatus.DECIDED or card.decision.verdict != ApprovalVerdict.DECLINED:
        return ""
    reason, note = card.decision.decline_reason, str(card.decision.said.get("freetext", ""))
    return ". ".join(filter(None, [str(reason.label) if reason else "", f"“{note}”" if note else ""]))


def required_gesture(card: Card, button: Button) -> Friction:
    """Return the gesture for this button; the passkey is asked for where the approval is signed."""
    return risk.friction_for(Risk(card.risk), has_passkey=False) if button.approves else Friction.TAP


def count_by_risk(cards: Iterable[Card], minimum: int) -> list[tuple[str, int]]:
    """Return how many cards of each risk above low are waiting, if at least `minimum` are (spec 0.5.4)."""
    risky = [Risk(card.risk) for card in cards if card.risk != Risk.LOW]
    counts = [(inline_label(level.label), risky.count(level)) for level in reversed(Risk) if level in risky]
    return counts if len(risky) >= minimum else []
