"""How forward may a piece of work be: offer, act and report, or wait for a yes? The one place that decides it.

Pure (spec 5.1.0). Risk and policy come first, whatever a model or an author wished. The answer opens nothing: what
needs a yes needs it in every mode; it says how work that may run is spoken of, and stands in the plan that is hashed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from kernel.llm.enums import InteractionMode, InteractionRegister

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
    """Risk, then the planner's override, then what the item already says, then the proxy's, then initiative, then the
    register's usual mode."""
    if risk_requires_confirmation:
        return InteractionMode.CONFIRM_ONLY_WHEN_REQUIRED
    asked = next((mode for mode in (planner_override, work_item_mode, proxy_mode) if mode is not None), None)
    if asked is not None:
        return asked
    if initiative_level >= high_initiative_min:
        if interaction_register == InteractionRegister.EXECUTION:
            return InteractionMode.ACT_AND_REPORT
        if interaction_register == InteractionRegister.EXPLORATION:
            return InteractionMode.DEFAULT_AND_OFFER
    return default_mode_by_register.get(interaction_register, InteractionMode.DEFAULT_AND_OFFER)


def mode_for(wish: InteractionHints, *, confirm: bool, item_mode: InteractionMode | None = None) -> InteractionMode:
    """The mode of a piece of work; `confirm`: risk or policy puts it before a person."""
    return resolve_interaction_mode(
        wish.proxy_mode, wish.planner_override, item_mode, confirm, wish.initiative, wish.register
    )
