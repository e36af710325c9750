"""Turn a verdict into an AutonomyDirective, depending on the mode (contract safety-loop 7, 16)."""

from __future__ import annotations

from typing import Any

from apps.safety.enums import Decision, Mode
from apps.safety.schemas import Verdict


def is_enforcing(mode: Mode) -> bool:
    """True in the only mode in which agents are held."""
    return mode is Mode.ENFORCING


def directive(mode: Mode, verdict: Verdict | None, *, steps_remaining: int | None = None) -> dict[str, Any]:
    """Build the directive without its notifications. `verdict` None: nothing was evaluated (logging, disabled)."""
    answer: dict[str, Any] = {"continue": True, "factors": [f"Mode: {mode.value}."]}
    if verdict is not None:
        answer["factors"] = list(verdict.factors) if is_enforcing(mode) else [*answer["factors"], *verdict.factors]
        answer["nextStepRisk"] = verdict.tier.value
    if verdict is not None and is_enforcing(mode) and verdict.decision is not Decision.GO:
        answer |= {"continue": False, "reason": verdict.reason}
        if verdict.decision is Decision.STOP:
            answer["stopped"] = True
    if steps_remaining is not None:
        answer["stepsRemaining"] = steps_remaining
    return answer
