"""How grave is a card, and what must a person do to say yes? The risk ladder of spec 0.5.2, decided from values alone.

| scope | can be undone | cannot be undone | destroys, can be undone | destroys for good |
|---|---|---|---|---|
| single_step | low | medium | high | irreversible |
| full_plan, budget, skill_install, connection_act | medium | high | high | irreversible |
| connection_manage, standing, autonomy_threshold | high | irreversible | high | irreversible |

A connection that only reads, or only widens what it already reaches, is medium instead of high (spec 0.5.3, 5.10.1).
What a skill or a plan declares can raise a rung and never lower it; a value from outside, or of the model's own, that
decides where something goes raises it by one (ADR 0103). The harness asks; no agent does.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum

from apps.approvals.enums import ApprovalScope, Risk

SCOPE_RISK: dict[ApprovalScope, Risk] = {
    ApprovalScope.SINGLE_STEP: Risk.LOW,
    ApprovalScope.FULL_PLAN: Risk.MEDIUM,
    ApprovalScope.BUDGET: Risk.MEDIUM,
    ApprovalScope.SKILL_INSTALL: Risk.MEDIUM,
    ApprovalScope.CONNECTION_ACT: Risk.MEDIUM,
    ApprovalScope.CONNECTION_MANAGE: Risk.HIGH,
    ApprovalScope.AUTONOMY_THRESHOLD: Risk.HIGH,
    ApprovalScope.STANDING: Risk.HIGH,
}
_LADDER = list(Risk)
_READS = ("read", "observe", "list", "search", "view")


class Friction(StrEnum):
    """What a yes takes, from the lightest to the heaviest; a no is always one tap."""

    TAP = "tap"
    CONFIRM = "confirm"
    SLIDE = "slide"
    SLIDE_AND_PASSKEY = "slide_and_passkey"


_FRICTION: dict[Risk, Friction] = {
    Risk.LOW: Friction.TAP,
    Risk.MEDIUM: Friction.CONFIRM,
    Risk.HIGH: Friction.SLIDE_AND_PASSKEY,
    Risk.IRREVERSIBLE: Friction.SLIDE_AND_PASSKEY,
}


def risk_of(
    scope: ApprovalScope,
    *,
    reversible: bool,
    destroys: bool = False,
    at_least: Risk = Risk.LOW,
    lifted: bool = False,
    base: Risk | None = None,
) -> Risk:
    """The rung of a card. `at_least`: what a skill or plan declares. `base`: the scope's rung for this kind of action.
    `lifted`: an outsider or the model decided where something goes, which is one rung more.

    What cannot be undone stands one rung above what can; only the gravest of it is called irreversible.
    """
    rung = highest(base or SCOPE_RISK[scope], at_least)
    if destroys:
        rung = highest(rung, Risk.HIGH if reversible else Risk.IRREVERSIBLE)
    elif not reversible:
        rung = _one_above(rung)
    return _one_above(rung) if lifted else rung


def _one_above(risk: Risk) -> Risk:
    return _LADDER[min(_LADDER.index(risk) + 1, len(_LADDER) - 1)]


def highest(*risks: Risk) -> Risk:
    return max(risks, key=_LADDER.index)


def is_at_least(risk: Risk, floor: Risk) -> bool:
    return _LADDER.index(risk) >= _LADDER.index(floor)


def friction_of(risk: Risk, *, has_passkey: bool) -> Friction:
    """The gesture of a rung; the passkey is asked for where the approver has registered one (spec 0.5.2)."""
    wanted = _FRICTION[risk]
    return Friction.SLIDE if wanted is Friction.SLIDE_AND_PASSKEY and not has_passkey else wanted


def access_risk(granted: Iterable[str], requested: Iterable[str]) -> Risk:
    """The rung of letting a connection reach `requested` when it has `granted` (spec 5.10.1, 5.10.2).

    Reading only, or more of a resource it already reaches, is medium; any other resource to write to is high.
    """
    reached = {_resource(name) for name in granted}
    wider = [name for name in requested if not _only_reads(name) and _resource(name) not in reached]
    new = [name for name in requested if reached and _resource(name) not in reached]
    return Risk.HIGH if wider or new else Risk.MEDIUM


def _resource(permission: str) -> str:
    """`Mail.ReadWrite`, `mail:write` and `mail/write` are all about mail."""
    return permission.replace(":", ".").replace("/", ".").rpartition(".")[0].casefold() or permission.casefold()


def _only_reads(permission: str) -> bool:
    verb = permission.replace(":", ".").replace("/", ".").rpartition(".")[2].casefold()
    return verb.startswith(_READS) and "write" not in verb
