"""List the kinds of cards: what each carries, how long it waits, and what its buttons mean. Pure.

Only an approval of a kind that `binds` can authorize anything. Every card can be declined, and declining is the last
button unless leaving things as they are is the recommended choice (spec 0.5.3, 8.1, 8.2).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from apps.approvals.cards import schemas
from apps.approvals.cards.risk import access_risk
from apps.approvals.enums import ApprovalScope as Scope
from apps.approvals.enums import ApprovalVerdict, CardKind, Pace, Risk
from apps.approvals.schemas import FrozenModel
from kernel.error_codes import ErrorCode
from kernel.errors import SilasError
from kernel.stored_texts import stored_text

APPROVE, DECLINE = "approve", "decline"


@dataclass(frozen=True)
class Choice:
    """One button: the value that it sends, the verdict that this means, and its label if the card brings none."""

    value: str
    verdict: ApprovalVerdict
    label: str = ""


@dataclass(frozen=True)
class Kind:
    """The rules of one kind of card. `options` returns the buttons that the payload adds before the last one;
    `base_risk` the risk by kind of action, None for that of the scope."""

    payload: type[FrozenModel]
    scopes: frozenset[Scope]
    choices: tuple[Choice, ...]
    pace: Pace = Pace.PLAN
    binds: bool = True
    body: type[FrozenModel] = schemas.EmptyBody
    options: Callable[[Mapping[str, Any]], tuple[Choice, ...]] = lambda payload: ()
    base_risk: Callable[[Mapping[str, Any]], Risk | None] = lambda payload: None


_APPROVE = Choice(APPROVE, ApprovalVerdict.APPROVED)
_DECLINE = Choice(DECLINE, ApprovalVerdict.DECLINED)
_APPROVE_OR_DECLINE = (_APPROVE, _DECLINE)


def _edit(value: str, label: str) -> Choice:
    return Choice(value, ApprovalVerdict.EDIT_REQUESTED, label)


def _options(payload: Mapping[str, Any]) -> tuple[Choice, ...]:
    options = payload.get("options", ())
    return tuple(Choice(option["value"], ApprovalVerdict.APPROVED, option["label"]) for option in options)


def _recoveries(payload: Mapping[str, Any]) -> tuple[Choice, ...]:
    options = (option for option in payload["recovery_options"] if option["action"] != "skip")
    return tuple(Choice(option["action"], ApprovalVerdict.APPROVED, option["label"]) for option in options)


_ONE_STEP = frozenset({Scope.SINGLE_STEP})
_BATCH = frozenset({Scope.CONNECTION_ACT})
_MANAGE = frozenset({Scope.CONNECTION_MANAGE})


def _rights(payload: Mapping[str, Any]) -> Risk:
    return access_risk(payload["before"], payload["after"])


KINDS: dict[CardKind, Kind] = {
    CardKind.PLAN: Kind(schemas.PlanPayload, frozenset({Scope.FULL_PLAN}), _APPROVE_OR_DECLINE),
    CardKind.STANDING: Kind(schemas.PlanPayload, frozenset({Scope.STANDING}), _APPROVE_OR_DECLINE, Pace.CALM),
    CardKind.GATE: Kind(schemas.GatePayload, _ONE_STEP, _APPROVE_OR_DECLINE, Pace.GATE),
    CardKind.BATCH_REVIEW: Kind(
        schemas.BatchPayload,
        _BATCH,
        (_APPROVE, _edit("edit_selection", stored_text("Only the ticked ones, ask again")), _DECLINE),
        Pace.CALM,
        body=schemas.BatchBody,
    ),
    CardKind.DRAFT_REVIEW: Kind(
        schemas.ToolCallPayload,
        _ONE_STEP,
        (
            _APPROVE,
            _edit("edit", stored_text("Save my wording, ask again")),
            _edit("rephrase", stored_text("Have it rephrased")),
            _DECLINE,
        ),
        body=schemas.DraftBody,
    ),
    CardKind.DECISION: Kind(schemas.DecisionPayload, _ONE_STEP, (_DECLINE,), binds=False, options=_options),
    CardKind.SUGGESTION: Kind(
        schemas.SuggestionPayload, _ONE_STEP, _APPROVE_OR_DECLINE, Pace.CALM, binds=False, options=_options
    ),
    CardKind.AUTONOMY_THRESHOLD: Kind(
        schemas.AutonomyPayload,
        frozenset({Scope.AUTONOMY_THRESHOLD}),
        (_APPROVE, _edit("tighten_now", stored_text("Tighten approvals instead")), _DECLINE),
        Pace.CALM,
    ),
    # Undoing takes one tap (spec 0.5.5). Leaving things as they are comes first: it is what most people want.
    CardKind.POST_EXECUTION: Kind(
        schemas.BatchPayload,
        _BATCH,
        (_DECLINE, _APPROVE),
        Pace.CALM,
        body=schemas.PostExecutionBody,
        base_risk=lambda payload: Risk.LOW,
    ),
    CardKind.SKILL_INSTALL: Kind(
        schemas.SkillPayload, frozenset({Scope.SKILL_INSTALL}), _APPROVE_OR_DECLINE, Pace.CALM, body=schemas.SkillBody
    ),
    CardKind.BUDGET: Kind(schemas.BudgetPayload, frozenset({Scope.BUDGET}), _APPROVE_OR_DECLINE, Pace.CALM),
    CardKind.CONNECTION: Kind(
        schemas.RightsPayload, _MANAGE, _APPROVE_OR_DECLINE, body=schemas.ConnectionBody, base_risk=_rights
    ),
    CardKind.PERMISSION_ESCALATION: Kind(
        schemas.RightsPayload,
        _MANAGE,
        (_APPROVE, Choice("just_this_once", ApprovalVerdict.APPROVED, stored_text("Just this once")), _DECLINE),
        body=schemas.PermissionBody,
        base_risk=_rights,
    ),
    # A check finds it at any hour, so it must still be open when people are back in the morning.
    CardKind.CONNECTION_FAILURE: Kind(
        schemas.FailurePayload, _ONE_STEP, (_DECLINE,), Pace.CALM, binds=False, options=_recoveries
    ),
}


# Kinds whose requester waits for the answer: a visitor, a turn, or a work item.
AWAITED_KINDS = frozenset({kind for kind, rules in KINDS.items() if rules.pace in (Pace.PLAN, Pace.GATE)})


def get_kind(name: str) -> Kind:
    """Raises `SilasError` `card_kind_unknown`."""
    try:
        return KINDS[CardKind(name)]
    except ValueError:
        raise SilasError(ErrorCode.CARD_KIND_UNKNOWN) from None


def choices_for(name: str, payload: Mapping[str, Any]) -> tuple[Choice, ...]:
    """Return every choice of a card with this payload, in the order of its buttons: the recommended one first."""
    kind = get_kind(name)
    options = kind.options(payload)
    if not options:
        return kind.choices
    return (*kind.choices[:-1], *options, kind.choices[-1])


def get_choice(name: str, payload: Mapping[str, Any], value: str) -> Choice:
    """Return the choice with this value. Raises `SilasError` `choice_unknown`."""
    for choice in choices_for(name, payload):
        if choice.value == value:
            return choice
    raise SilasError(ErrorCode.CHOICE_UNKNOWN, status=400)
