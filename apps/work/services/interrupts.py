"""Cards in the shape of an Agent Inbox interrupt, and its responses: accept, edit, response and ignore.

Each response but `ignore` is one of the card's own answers, given by the same services with the same signature; none
decides what the card's own answer would not. Inside the tenant's scope.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from apps.approvals import queries as cards
from apps.approvals.cards.kinds import DECLINE, Choice
from apps.approvals.cards.kinds.batch_review import SELECTION
from apps.approvals.cards.kinds.draft_review import EDIT, REPHRASE
from apps.approvals.cards.schemas import AnswerDetails, ClientSignature
from apps.approvals.cards.services import answer_card
from apps.approvals.enums import ApprovalVerdict, CardKind
from apps.approvals.models import Card
from apps.work.services.edits import edit_plan, is_editable
from kernel.error_codes import ErrorCode
from kernel.errors import SilasError
from kernel.language import gettext


@dataclass(frozen=True)
class Action:
    """What the card asks for: one call where it is about one, else its kind with the payload."""

    action: str
    args: dict[str, Any]


def interrupt_of(card: Card) -> dict[str, object]:
    """Return the card as an Agent Inbox interrupt. Nothing is allowed on a card that is no longer open."""
    return {
        "action_request": action_of(card),
        "config": {
            "allow_accept": card.is_open and _approval(card) is not None,
            "allow_edit": card.is_open and (is_editable(card) or card.kind in _EDITED),
            "allow_respond": card.is_open,
            "allow_ignore": card.is_open,
        },
        "description": "\n\n".join(filter(None, (card.intent, card.rationale, _facts(card), card.affected))),
    }


def action_of(card: Card) -> Action:
    payload = card.payload
    if is_editable(card):
        calls = [{"tool": call["tool"], "args": call["args"]} for call in card.details["calls"]]
        return Action(calls[0]["tool"], calls[0]["args"]) if len(calls) == 1 else Action(card.kind, {"calls": calls})
    match card.kind:
        case CardKind.DRAFT_REVIEW:
            return Action(payload["tool"], payload["args"])
        case CardKind.BATCH_REVIEW:
            return Action(payload["action"], {"item_ids": payload["item_ids"]})
        case CardKind.GATE if payload["holds"].get("tool"):
            return Action(payload["holds"]["tool"], payload["holds"]["args"])
    return Action(card.kind, payload)


def accept(card: Card, *, face: str, signature: ClientSignature) -> object:
    """Approve the card; returns and raises as `answer_card`. Raises `SilasError`: `choice_unknown` 409 for a card with
    several answers or none that approves."""
    choice = _approval(card)
    if choice is None:
        raise SilasError(ErrorCode.CHOICE_UNKNOWN)
    return answer_card(card.pk, user=signature.key.user, choice=choice.value, face=face, signature=signature)


def respond(card: Card, text: str, *, face: str, signature: ClientSignature) -> object:
    """Answer a question with one of its options, by value or label; have a draft rephrased; decline anything else with
    the text as the reason. Returns and raises as `answer_card`. Raises `SilasError`: `choice_unknown` 409,
    `text_missing`."""
    text = text.strip()
    if not text:
        raise SilasError(ErrorCode.TEXT_MISSING)
    if card.of_kind.binds:
        choice = REPHRASE if card.kind == CardKind.DRAFT_REVIEW else DECLINE
        details = AnswerDetails(freetext=text)
    else:
        choice, details = _option(card, text), AnswerDetails()
    return answer_card(card.pk, user=signature.key.user, choice=choice, face=face, details=details, signature=signature)


def edit(card: Card, action: Action, *, face: str, signature: ClientSignature) -> object:
    """Replace the card by one with other arguments, which needs an approval of its own. Returns and raises as
    `answer_card` and `edit_plan`. Raises `SilasError`: `edit_unfit` 409 for another action or argument."""
    if action.action != action_of(card).action:
        raise _unfit()
    if is_editable(card):
        if card.is_open:
            cards.require_unchanged(card, face)
        calls = (
            action.args.get("calls", ())
            if action.action == card.kind
            else [{"tool": action.action, "args": action.args}]
        )
        return edit_plan(card.pk, user=signature.key.user, calls=_calls(calls), signature=signature)
    if card.kind not in _EDITED:
        raise _unfit()
    choice, details = _EDITED[CardKind(card.kind)](card, action.args)
    return answer_card(card.pk, user=signature.key.user, choice=choice, face=face, details=details, signature=signature)


def _rewording(card: Card, args: Mapping[str, object]) -> tuple[str, AnswerDetails]:
    """The new text of a draft, from the arguments of its call."""
    before, draft = card.payload["args"], card.body["draft"]
    texts = {str(args.get(name)) for name, value in before.items() if value == draft}
    (text, *others) = texts
    if others or dict(args) != {name: text if value == draft else value for name, value in before.items()}:
        raise _unfit()
    return EDIT, AnswerDetails(text=text)


def _selection(card: Card, args: Mapping[str, object]) -> tuple[str, AnswerDetails]:
    """The items of a batch to keep."""
    items = args.get("item_ids")
    if set(args) != {"item_ids"} or not isinstance(items, list):
        raise _unfit()
    return SELECTION, AnswerDetails(selected=[str(item) for item in items])


_EDITED = {CardKind.DRAFT_REVIEW: _rewording, CardKind.BATCH_REVIEW: _selection}


def _calls(calls: object) -> list[dict[str, object]]:
    if not isinstance(calls, list) or not all(
        isinstance(call, dict) and isinstance(call.get("tool"), str) and isinstance(call.get("args"), dict)
        for call in calls
    ):
        raise _unfit()
    return calls


def _approval(card: Card) -> Choice | None:
    """The only choice that approves, if there is exactly one."""
    approving = [choice for choice in card.of_kind.choices_on(card) if choice.verdict == ApprovalVerdict.APPROVED]
    return approving[0] if len(approving) == 1 else None


def _option(card: Card, text: str) -> str:
    for choice in card.of_kind.choices_on(card):
        if text in (choice.value, choice.label, card.consequence.get(choice.value)):
            return choice.value
    raise SilasError(ErrorCode.CHOICE_UNKNOWN)


def _facts(card: Card) -> str:
    return "\n".join(
        f"{fact['label']}: {fact.get('text') or ' → '.join(filter(None, (fact.get('before'), fact.get('after'))))}"
        for fact in card.facts
    )


def _unfit() -> SilasError:
    return SilasError(ErrorCode.EDIT_UNFIT, gettext("This can't be edited."), status=409)
