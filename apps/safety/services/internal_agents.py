"""Evaluate calls of our own agents with the same rules, from a hint that is generated (contract safety-loop 21).

The guard calls this in its transaction, for calls that act and never for reads. Only a stop refuses the call: for a
pause the guard already requires a person's approval of exactly this call, so one action asks once.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from apps.safety.enums import Decision, HoldKind, Mode
from apps.safety.locks import lock_agent
from apps.safety.queries import open_block, policy_of
from apps.safety.rules.stages import evaluate, is_enforcing
from apps.safety.schemas import Intended
from apps.safety.services.holds import open_hold

_NUMBER = re.compile(r"[A-Za-z]{0,4}[-_:#]?\d[\d.,:T+-]{0,30}Z?\Z")
_MAX_ARGUMENTS = 20


def judge_internal_call(principal: str, *, name: str, intent: str, tool: str, args: Mapping[str, object]) -> str:
    """Return "" when the call may go on, otherwise the reason. A stop blocks the principal until a person lifts it."""
    if (block := open_block(principal)) is not None:
        return block.reason
    policy = policy_of(principal)
    if policy.mode in (Mode.LOGGING, Mode.DISABLED):
        return ""
    hint = hint_for_call(intent, tool, args)
    verdict = evaluate(policy, Intended(hint))
    if verdict.decision is not Decision.STOP or not is_enforcing(policy.mode):
        return ""
    open_hold(lock_agent(principal, name), None, verdict, policy, kind=HoldKind.BLOCK, hint=hint)
    return verdict.reason


def hint_for_call(intent: str, tool: str, args: Mapping[str, object]) -> str:
    """Intent, tool and arguments in canonical order.

    Text is given by its length only, so that a visitor's words can neither soften a hint nor make it dangerous. Ids,
    amounts and times are given as they are.
    """
    arguments = [f"{key}={_argument_text(args[key])}" for key in sorted(args)[:_MAX_ARGUMENTS]]
    return " ".join([intent, tool, *arguments])[:2000]


def _argument_text(value: object) -> str:
    if isinstance(value, bool | int | float) or value is None:
        return str(value).lower()
    if isinstance(value, str):
        return value if _NUMBER.match(value) else f"text({len(value)})"
    return f"{type(value).__name__}({len(value)})" if hasattr(value, "__len__") else type(value).__name__
