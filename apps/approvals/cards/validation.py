"""Validate a card before it is opened: the card contract of spec 0.5.3. Pure.

A card says in one line what it does, why, what each button does and what it affects. Its payload has the shape of its
kind, and what is shown beside the payload agrees with it. Errors name fields, never their content.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Never

from pydantic import ValidationError

from apps.approvals.cards import kinds
from apps.approvals.cards.kinds import Kind
from apps.approvals.cards.schemas import CardText
from apps.approvals.enums import ApprovalScope
from apps.approvals.schemas import FrozenModel
from apps.approvals.tokens import payloads
from kernel.canonical import canonical_bytes
from kernel.error_codes import ErrorCode
from kernel.errors import SilasError
from kernel.unicode_safety import has_hidden_characters

# Characters, but `facts` is a number of facts and `bytes` the size of everything on the card.
MAX_LENGTHS = {
    "intent": 300,
    "rationale": 2000,
    "affected": 300,
    "label": 160,
    "fact": 20_000,
    "facts": 200,
    "bytes": 400_000,
}
# A button names a concrete outcome (spec 0.5.3); these words name none.
_MEANINGLESS_LABELS = frozenset(
    {"ok", "okay", "yes", "no", "submit", "confirm", "continue", "approve", "decline", "cancel", "done", "accept"}
)


def validate_card(
    name: str, scope: ApprovalScope, payload: Mapping[str, object], body: Mapping[str, object], text: CardText
) -> Kind:
    """Return the kind of a card that keeps the contract.

    Raises `SilasError`: `card_kind_unknown`, `card_scope_unfit`, `card_payload_unfit`, `card_body_unfit`,
    `card_incomplete`, `card_too_long`, `card_unreadable`, `payload_shape` (not exactly what the scope binds).
    """
    kind = kinds.get_kind(name)
    if scope not in kind.scopes:
        _refuse(ErrorCode.CARD_SCOPE_UNFIT, "This kind of card cannot ask for that.", "scope")
    _require_size(payload, body, text)
    validate_shape(kind.payload, payload, ErrorCode.CARD_PAYLOAD_UNFIT, "The payload does not fit this kind of card.")
    validate_shape(kind.body, body, ErrorCode.CARD_BODY_UNFIT, "What the card shows does not fit its kind.")
    if kind.binds:
        payloads.approvable(scope, payload)
    if disagreement := kind.disagreement(payload, body):
        field, message = disagreement
        _refuse(ErrorCode.CARD_BODY_UNFIT, message, field)
    _require_text(kind, payload, text)
    # Bidirectional and invisible characters can make a line read as something else than it says.
    hidden = [field for field in ("intent", "affected") if has_hidden_characters(getattr(text, field))]
    hidden += [f"consequence.{value}" for value, label in text.consequence.items() if has_hidden_characters(label)]
    if hidden:
        _refuse(ErrorCode.CARD_UNREADABLE, "A text of the card looks different from what it is.", *hidden)
    return kind


def validate_shape(
    model: type[FrozenModel], data: Mapping[str, object], code: ErrorCode, message: str
) -> dict[str, object]:
    """Return `data` as the plain JSON that `model` makes of it. The error names fields, never their values."""
    try:
        return model.model_validate(data).model_dump(mode="json")
    except ValidationError as error:
        fields = sorted({".".join(map(str, problem["loc"])) or "all" for problem in error.errors()})
        raise SilasError(code, message, extra={"fields": fields}) from error


def single_line(text: str) -> str:
    return " ".join(text.split())


def button_labels(kind: Kind, payload: Mapping[str, object], consequence: Mapping[str, str]) -> dict[str, str]:
    """Return the label of every button: the card's own, else the one of its kind."""
    own = {value: single_line(label) for value, label in consequence.items()}
    return {choice.value: own.get(choice.value) or choice.label for choice in kind.all_choices(payload)}


def _refuse(code: ErrorCode, message: str, *fields: str) -> Never:
    raise SilasError(code, message, extra={"fields": sorted(fields)})


def _require_size(payload: Mapping[str, object], body: Mapping[str, object], text: CardText) -> None:
    long = [field for field in ("intent", "rationale", "affected") if len(getattr(text, field)) > MAX_LENGTHS[field]]
    long += [f"consequence.{value}" for value, label in text.consequence.items() if len(label) > MAX_LENGTHS["label"]]
    if len(text.facts) > MAX_LENGTHS["facts"] or any(len(line) > MAX_LENGTHS["fact"] for line in text.fact_lines):
        long.append("facts")
    size = sum(len(canonical_bytes(part)) for part in (payload, body, text.details)) if not long else 0
    if size > MAX_LENGTHS["bytes"]:
        long.append("details")
    if long:
        _refuse(ErrorCode.CARD_TOO_LONG, "The card says more than a person can read.", *long)


def _require_text(kind: Kind, payload: Mapping[str, object], text: CardText) -> None:
    missing = [field for field in ("intent", "rationale") if not getattr(text, field).strip()]
    for value, label in button_labels(kind, payload, text.consequence).items():
        if not label.strip() or label.strip(" .!").casefold() in _MEANINGLESS_LABELS:
            missing.append(f"consequence.{value}")
    if kind.names_affected and not text.affected.strip():
        missing.append("affected")
    if missing:
        _refuse(ErrorCode.CARD_INCOMPLETE, "The card does not say what a person must know.", *missing)
