"""Compute how risky a card is and which gesture approves it: the risk ladder of spec 0.5.2. Pure.

| scope | can be undone | cannot be undone | destroys, can be undone | destroys for good |
|---|---|---|---|---|
| single_step | low | medium | high | irreversible |
| full_plan, budget, skill_install, connection_act | medium | high | high | irreversible |
| connection_manage, standing, autonomy_threshold | high | irreversible | high | irreversible |

A connection that only reads, or only widens what it already reaches, is medium instead of high (spec 0.5.3, 5.10.1).
What a skill or a plan declares can raise the risk and never lower it. A value from outside, or one that the model made
up, that decides where something goes raises it by one level (ADR 103). No agent computes a risk.
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
    """The gesture that approves, from the lightest to the heaviest. Declining is always one tap."""

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


def card_risk(
    scope: ApprovalScope,
    *,
    reversible: bool,
    destroys: bool = False,
    at_least: Risk = Risk.LOW,
    untrusted_target: bool = False,
    base: Risk | None = None,
) -> Risk:
    """Return the risk of a card. What cannot be undone is one level above what can.

    `at_least`: what a skill or plan declares. `base`: the risk of this kind of action, instead of the scope's.
    `untrusted_target`: an outsider or the model decided where something goes, which is one level more.
    """
    risk = max_risk(base or SCOPE_RISK[scope], at_least)
    if destroys:
        risk = max_risk(risk, Risk.HIGH if reversible else Risk.IRREVERSIBLE)
    elif not reversible:
        risk = _one_above(risk)
    return _one_above(risk) if untrusted_target else risk


def _one_above(risk: Risk) -> Risk:
    return _LADDER[min(_LADDER.index(risk) + 1, len(_LADDER) - 1)]


def max_risk(*risks: Risk) -> Risk:
    return max(risks, key=_LADDER.index)


def is_at_least(risk: Risk, floor: Risk) -> bool:
    return _LADDER.index(risk) >= _LADDER.index(floor)


def friction_for(risk: Risk, *, has_passkey: bool) -> Friction:
    """Return the gesture for a risk; a passkey is part of it if the approver has registered one (spec 0.5.2)."""
    friction = _FRICTION[risk]
    return Friction.SLIDE if friction is Friction.SLIDE_AND_PASSKEY and not has_passkey else friction


def access_risk(granted: Iterable[str], requested: Iterable[str]) -> Risk:
    """Return the risk of granting `requested` to a connection that has `granted` (spec 5.10.1, 5.10.2).

    Reading only, or more of a resource that it already reaches, is medium; any other resource to write to is high.
    """
    reached = {_resource(permission) for permission in granted}
    unreached = [permission for permission in requested if _resource(permission) not in reached]
    is_wider = any(not _only_reads(permission) for permission in unreached)
    return Risk.HIGH if is_wider or (reached and unreached) else Risk.MEDIUM


def _resource(permission: str) -> str:
    """Return the resource of a permission: `Mail.ReadWrite`, `mail:write` and `mail/write` are all about mail."""
    return permission.replace(":", ".").replace("/", ".").rpartition(".")[0].casefold() or permission.casefold()


def _only_reads(permission: str) -> bool:
    verb = permission.replace(":", ".").replace("/", ".").rpartition(".")[2].casefold()
    return verb.startswith(_READS) and "write" not in verb
