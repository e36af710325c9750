"""Is this card fit to be put before a person? The card contract of spec 0.5.3, held by the harness; pure.

Always holds: a card says in one line what it does, why, what each button does and what it affects; its payload has the
shape of its kind, and what stands beside the payload agrees with it. A refusal names fields, never their content.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Never

from apps.approvals import kinds, payloads
from apps.approvals.asks import Action, CardText
from apps.approvals.enums import ApprovalScope, CardKind
from apps.approvals.kinds import Kind
from kernel.canonical import canonical_bytes
from kernel.errors import SilasError
from kernel.unicode_safety import has_hidden_characters

MOST = {"intent": 300, "rationale": 2000, "affected": 300, "label": 160, "fact": 20_000, "facts": 200, "bytes": 400_000}
# Words that say nothing of what will happen (spec 0.5.3: a concrete outcome on each button).
_SAYS_NOTHING = frozenset(
    {"ok", "okay", "yes", "no", "submit", "confirm", "continue", "approve", "decline", "cancel", "done", "accept"}
)


def held(name: str, scope: ApprovalScope, payload: Mapping[str, Any], body: Mapping[str, Any], text: CardText) -> Kind:
    """The kind of a card that keeps the contract.

    Raises `SilasError`: `card_kind_unknown`, `card_scope_unfit`, `card_payload_unfit`, `card_body_unfit`,
    `card_incomplete`, `card_too_long`, `card_unreadable`, `payload_shape` (not exactly what the scope binds).
    """
    kind = kinds.kind_of(name)
    _require_scope(kind, scope)
    _require_size(payload, body, text)
    kinds.shape(kind.payload, payload, code="card_payload_unfit", message="The payload does not fit this kind of card.")
    kinds.shape(kind.body, body, code="card_body_unfit", message="What the card shows does not fit its kind.")
    if kind.binds:
        payloads.approvable(scope, payload)
    _require_agreement(CardKind(name), payload, body)
    _require_words(name, payload, text)
    _require_readable(text)
    return kind


def on_one_line(text: str) -> str:
    return " ".join(text.split())


def labels(name: str, payload: Mapping[str, Any], consequence: Mapping[str, str]) -> dict[str, str]:
    """The words of every button: the card's own, else those of its kind."""
    given = {value: on_one_line(words) for value, words in consequence.items()}
    return {each.value: given.get(each.value) or each.label for each in kinds.choices_of(name, payload)}


def _refuse(code: str, message: str, *fields: str) -> Never:
    raise SilasError(code, message, extra={"fields": sorted(fields)})


def _require_scope(kind: Kind, scope: ApprovalScope) -> None:
    if scope not in kind.scopes:
        _refuse("card_scope_unfit", "This kind of card cannot ask for that.", "scope")


def _require_size(payload: Mapping[str, Any], body: Mapping[str, Any], text: CardText) -> None:
    long = [name for name in ("intent", "rationale", "affected") if len(getattr(text, name)) > MOST[name]]
    long += [f"consequence.{name}" for name, words in text.consequence.items() if len(words) > MOST["label"]]
    if len(text.facts) > MOST["facts"] or any(len(line) > MOST["fact"] for line in text.fact_lines):
        long.append("facts")
    if not long and sum(len(canonical_bytes(each)) for each in (payload, body, text.details)) > MOST["bytes"]:
        long.append("details")
    if long:
        _refuse("card_too_long", "The card says more than a person can read.", *long)


def _require_agreement(kind: CardKind, payload: Mapping[str, Any], body: Mapping[str, Any]) -> None:
    """What is listed is what is bound, in that order; the words shown are the words that would be sent."""
    if kind is CardKind.BATCH_REVIEW and [item["item_id"] for item in body["items"]] != payload["item_ids"]:
        _refuse("card_body_unfit", "The listed items are not the ones that a yes binds.", "items")
    if kind is CardKind.DRAFT_REVIEW and body["draft"] not in Action.model_validate(payload).texts:
        _refuse("card_body_unfit", "The draft shown is not the one that a yes binds.", "draft")


def _require_words(name: str, payload: Mapping[str, Any], text: CardText) -> None:
    missing = [field for field in ("intent", "rationale") if not getattr(text, field).strip()]
    said = labels(name, payload, text.consequence)
    missing += [f"consequence.{value}" for value, words in said.items() if _says_nothing(words)]
    if CardKind(name) is CardKind.BATCH_REVIEW and not text.affected.strip():
        missing.append("affected")
    if missing:
        _refuse("card_incomplete", "The card does not say what a person must know.", *missing)


def _says_nothing(words: str) -> bool:
    return not words.strip() or words.strip(" .!").casefold() in _SAYS_NOTHING


def _require_readable(text: CardText) -> None:
    hidden = [name for name in ("intent", "affected") if has_hidden_characters(getattr(text, name))]
    hidden += [f"consequence.{name}" for name, words in text.consequence.items() if has_hidden_characters(words)]
    if hidden:
        _refuse("card_unreadable", "A text of the card looks different from what it is.", *hidden)
