"""Which cards are there, what does each carry, and what do its answers mean? One table; pure.

Only an answer of a kind that `binds` can open anything, and only its `approve` and what stands beside it as a yes. A
no is always there, always last but where keeping things as they are is the recommended one (spec 0.5.3, 8.1, 8.2).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from apps.approvals import asks
from apps.approvals.enums import ApprovalScope as Scope
from apps.approvals.enums import ApprovalVerdict, CardKind, Pace, Risk
from apps.approvals.risk import access_risk
from apps.approvals.schemas import Frozen
from kernel.errors import SilasError

APPROVE, DECLINE = "approve", "decline"


@dataclass(frozen=True)
class Choice:
    """One button: what it sends, what that means, and the words it has when the card brings none."""

    value: str
    verdict: ApprovalVerdict
    label: str = ""


@dataclass(frozen=True)
class Kind:
    """`options`: the payload's own, which stand between the yes and the no. `base`: the rung by kind of action."""

    payload: type[Frozen]
    scopes: frozenset[Scope]
    choices: tuple[Choice, ...]
    pace: Pace = Pace.PLAN
    binds: bool = True
    body: type[Frozen] = asks.Nothing
    options: Callable[[Mapping[str, Any]], tuple[Choice, ...]] = lambda payload: ()
    base: Callable[[Mapping[str, Any]], Risk | None] = lambda payload: None


_YES = Choice(APPROVE, ApprovalVerdict.APPROVED)
_NO = Choice(DECLINE, ApprovalVerdict.DECLINED)
_YES_OR_NO = (_YES, _NO)


def _other(value: str, label: str) -> Choice:
    """Neither yes nor no: somebody wants it otherwise."""
    return Choice(value, ApprovalVerdict.EDIT_REQUESTED, label)


def _options(payload: Mapping[str, Any]) -> tuple[Choice, ...]:
    found = payload.get("options", ())
    return tuple(Choice(each["value"], ApprovalVerdict.APPROVED, each["label"]) for each in found)


def _recoveries(payload: Mapping[str, Any]) -> tuple[Choice, ...]:
    found = (each for each in payload["recovery_options"] if each["action"] != "skip")
    return tuple(Choice(each["action"], ApprovalVerdict.APPROVED, each["label"]) for each in found)


_ONE_STEP = frozenset({Scope.SINGLE_STEP})
_BATCH = frozenset({Scope.CONNECTION_ACT})
_MANAGE = frozenset({Scope.CONNECTION_MANAGE})


def _rights(payload: Mapping[str, Any]) -> Risk:
    return access_risk(payload["before"], payload["after"])


KINDS: dict[CardKind, Kind] = {
    CardKind.PLAN: Kind(asks.Plan, frozenset({Scope.FULL_PLAN}), _YES_OR_NO),
    CardKind.STANDING: Kind(asks.Plan, frozenset({Scope.STANDING}), _YES_OR_NO, Pace.CALM),
    CardKind.GATE: Kind(asks.GatePayload, _ONE_STEP, _YES_OR_NO, Pace.GATE),
    CardKind.BATCH_REVIEW: Kind(
        asks.BatchPayload,
        _BATCH,
        (_YES, _other("edit_selection", "Only the ticked ones, ask again"), _NO),
        Pace.CALM,
        body=asks.BatchBody,
    ),
    CardKind.DRAFT_REVIEW: Kind(
        asks.Action,
        _ONE_STEP,
        (_YES, _other("edit", "Save my wording, ask again"), _other("rephrase", "Have it rephrased"), _NO),
        body=asks.DraftBody,
    ),
    CardKind.DECISION: Kind(asks.DecisionPayload, _ONE_STEP, (_NO,), binds=False, options=_options),
    CardKind.SUGGESTION: Kind(asks.SuggestionPayload, _ONE_STEP, _YES_OR_NO, Pace.CALM, binds=False, options=_options),
    CardKind.AUTONOMY_THRESHOLD: Kind(
        asks.AutonomyPayload,
        frozenset({Scope.AUTONOMY_THRESHOLD}),
        (_YES, _other("tighten_now", "Tighten approvals instead"), _NO),
        Pace.CALM,
    ),
    # Undoing takes one tap (spec 0.5.5), and leaving things as they are is what most people want.
    CardKind.POST_EXECUTION: Kind(
        asks.BatchPayload,
        _BATCH,
        (_NO, _YES),
        Pace.CALM,
        body=asks.PostExecutionBody,
        base=lambda payload: Risk.LOW,
    ),
    CardKind.SKILL_INSTALL: Kind(
        asks.SkillPayload, frozenset({Scope.SKILL_INSTALL}), _YES_OR_NO, Pace.CALM, body=asks.SkillBody
    ),
    CardKind.BUDGET: Kind(asks.BudgetPayload, frozenset({Scope.BUDGET}), _YES_OR_NO, Pace.CALM),
    CardKind.CONNECTION: Kind(asks.RightsPayload, _MANAGE, _YES_OR_NO, body=asks.ConnectionBody, base=_rights),
    CardKind.PERMISSION_ESCALATION: Kind(
        asks.RightsPayload,
        _MANAGE,
        (_YES, Choice("just_this_once", ApprovalVerdict.APPROVED, "Just this once"), _NO),
        body=asks.PermissionBody,
        base=_rights,
    ),
    # Found by a check at any hour: nobody waits, and whoever comes in the morning has to see it.
    CardKind.CONNECTION_FAILURE: Kind(
        asks.FailurePayload, _ONE_STEP, (_NO,), Pace.CALM, binds=False, options=_recoveries
    ),
}


def of_pace(*paces: Pace) -> frozenset[CardKind]:
    return frozenset({kind for kind, about in KINDS.items() if about.pace in paces})


# Whoever asks these waits for the answer: a visitor, a turn, a piece of work.
AWAITED = of_pace(Pace.PLAN, Pace.GATE)


def kind_of(name: str) -> Kind:
    """Raises `SilasError` `card_kind_unknown`."""
    try:
        return KINDS[CardKind(name)]
    except ValueError:
        raise SilasError("card_kind_unknown", "There is no such kind of card.") from None


def choices_of(name: str, payload: Mapping[str, Any]) -> tuple[Choice, ...]:
    """Every answer that a card with this payload takes, in the order of its buttons: recommended first, no last."""
    kind = kind_of(name)
    options = kind.options(payload)
    if not options:
        return kind.choices
    return (*kind.choices[:-1], *options, kind.choices[-1])


def choice_of(name: str, payload: Mapping[str, Any], value: str) -> Choice:
    """The answer with this value. Raises `SilasError` `choice_unknown`."""
    found = next((each for each in choices_of(name, payload) if each.value == value), None)
    if found is None:
        raise SilasError("choice_unknown", "This card does not offer that answer.")
    return found


def shape(model: type[Frozen], given: Mapping[str, Any], *, code: str, message: str) -> dict[str, Any]:
    """`given` as the plain JSON that the shape makes of it; names of what does not fit, never its values."""
    try:
        return model.model_validate(given).model_dump(mode="json")
    except ValidationError as error:
        fields = sorted({".".join(map(str, each["loc"])) or "all" for each in error.errors()})
        raise SilasError(code, message, extra={"fields": fields}) from error
