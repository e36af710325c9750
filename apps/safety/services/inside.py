"""Our own agents pass through the same evaluator, with a hint that a machine made (contract safety-loop 21).

Called by the guard, in its transaction, for calls that act; what only reads is never asked about. Only a stop refuses:
for a pause the guard has a person's approval of exactly this call, one prompt for one action.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from apps.safety.enums import Decision, HoldKind, Mode
from apps.safety.locks import lock_agent
from apps.safety.queries import standing
from apps.safety.rules import decides, evaluate
from apps.safety.schemas import Intended
from apps.safety.services.holding import open_hold

_NUMBER = re.compile(r"[A-Za-z]{0,4}[-_:#]?\d[\d.,:T+-]{0,30}Z?\Z")
_MOST_ARGUMENTS = 20


def ask_inside(principal: str, *, name: str, intent: str, tool: str, args: Mapping[str, Any]) -> str:
    """ "" when nothing speaks against the call, or why it is refused. A stop blocks the principal until a person lifts
    it."""
    blocked, policy = standing(principal)
    if blocked:
        return blocked
    if policy.mode in (Mode.LOGGING, Mode.DISABLED):
        return ""
    hint = machine_hint(intent, tool, args)
    verdict = evaluate(policy, Intended(hint))
    if verdict.decision is not Decision.STOP or not decides(policy.mode):
        return ""
    open_hold(lock_agent(principal, name), None, verdict, policy, kind=HoldKind.BLOCK, hint=hint)
    return verdict.reason


def machine_hint(intent: str, tool: str, args: Mapping[str, Any]) -> str:
    """Intent, tool and arguments in canonical order. Of words only their length is told: what a visitor wrote neither
    softens a hint nor makes a danger of it. Numbers of things, sums and times are told as they are."""
    told = [f"{key}={_told(args[key])}" for key in sorted(args)[:_MOST_ARGUMENTS]]
    return " ".join([intent, tool, *told])[:2000]


def _told(value: Any) -> str:
    if isinstance(value, bool | int | float) or value is None:
        return str(value).lower()
    if isinstance(value, str):
        return value if _NUMBER.match(value) else f"text({len(value)})"
    return f"{type(value).__name__}({len(value)})" if hasattr(value, "__len__") else type(value).__name__
