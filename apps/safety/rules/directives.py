"""What is an agent told? The verdict as an AutonomyDirective, by the mode (contract safety-loop 7, 16)."""

from __future__ import annotations

from typing import Any

from apps.safety.enums import Decision, Mode
from apps.safety.schemas import Verdict


def decides(mode: Mode) -> bool:
    """Only one mode holds anybody."""
    return mode is Mode.ENFORCING


def directive(mode: Mode, verdict: Verdict | None, *, steps_remaining: int | None = None) -> dict[str, Any]:
    """The directive without its notifications. `verdict` None: nothing was evaluated (logging, disabled)."""
    said: dict[str, Any] = {"continue": True, "factors": [f"Mode: {mode.value}."]}
    if verdict is not None:
        said["factors"] = list(verdict.factors) if decides(mode) else [*said["factors"], *verdict.factors]
        said["nextStepRisk"] = verdict.tier.value
    if verdict is not None and decides(mode) and verdict.decision is not Decision.GO:
        said |= {"continue": False, "reason": verdict.reason}
        if verdict.decision is Decision.STOP:
            said["stopped"] = True
    if steps_remaining is not None:
        said["stepsRemaining"] = steps_remaining
    return said
