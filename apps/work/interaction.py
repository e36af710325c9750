"""Decide how proactive a work item is: offer, act and report, or wait for approval (spec 5.1.0).

Pure. Risk and policy come first, regardless of what a model or an author asked for. The mode grants nothing: what
needs approval needs it in every mode. It decides how work is presented and is part of the hashed plan.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from llm.enums import InteractionMode, InteractionRegister

HIGH_INITIATIVE_MIN = 0.65
DEFAULT_MODES: Mapping[InteractionRegister, InteractionMode] = MappingProxyType(
    {
        InteractionRegister.EXPLORATION: InteractionMode.DEFAULT_AND_OFFER,
        InteractionRegister.EXECUTION: InteractionMode.ACT_AND_REPORT,
        InteractionRegister.REVIEW: InteractionMode.CONFIRM_ONLY_WHEN_REQUIRED,
        InteractionRegister.STATUS: InteractionMode.DEFAULT_AND_OFFER,
    }
)


@dataclass(frozen=True)
class InteractionHints:
    """What the turn asked for: the planner's override, the proxy's mode, register and initiative (0..1)."""

    planner_override: InteractionMode | None = None
    proxy_mode: InteractionMode | None = None
    register: InteractionRegister = InteractionRegister.EXECUTION
    initiative: float = 0.5


DEFAULT_HINTS = InteractionHints()


def resolve_interaction_mode(
    proxy_mode: InteractionMode | None,
    planner_override: InteractionMode | None,
    work_item_mode: InteractionMode | None,
    risk_requires_confirmation: bool,
    initiative_level: float,
    interaction_register: InteractionRegister,
    high_initiative_min: float = HIGH_INITIATIVE_MIN,
    default_mode_by_register: Mapping[InteractionRegister, InteractionMode] = DEFAULT_MODES,
) -> InteractionMode:
    """Order of precedence: risk, the planner's override, the item's own mode, the proxy's, initiative, the register's
    default."""
    if risk_requires_confirmation:
        return InteractionMode.CONFIRM_ONLY_WHEN_REQUIRED
    explicit = next((mode for mode in (planner_override, work_item_mode, proxy_mode) if mode is not None), None)
    if explicit is not None:
        return explicit
    if initiative_level >= high_initiative_min:
        if interaction_register == InteractionRegister.EXECUTION:
            return InteractionMode.ACT_AND_REPORT
        if interaction_register == InteractionRegister.EXPLORATION:
            return InteractionMode.DEFAULT_AND_OFFER
    return default_mode_by_register.get(interaction_register, InteractionMode.DEFAULT_AND_OFFER)


def mode_for(hints: InteractionHints, *, confirm: bool) -> InteractionMode:
    """Return the mode of a work item; `confirm`: risk or policy requires a person."""
    return resolve_interaction_mode(
        hints.proxy_mode, hints.planner_override, None, confirm, hints.initiative, hints.register
    )
