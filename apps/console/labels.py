"""Labels of enumerations as they are written within a sentence."""

from __future__ import annotations

from collections.abc import Mapping

from django.utils.functional import Promise
from django.utils.translation import get_language, gettext_lazy

from apps.autonomy.enums import SpawnRefusal
from apps.connections.enums import AuthStrategy
from apps.gates.enums import GateCode
from apps.work.enums import WorkReason

CODE_LABELS: Mapping[str, str | Promise] = {
    # Limits of a run.
    "limit_cost_usd": gettext_lazy("Spending limit (USD)"),
    "spent_cost_usd": gettext_lazy("Spent (USD)"),
    "remaining_cost_usd": gettext_lazy("Remaining (USD)"),
    "limit_tokens": gettext_lazy("Token limit"),
    "spent_tokens": gettext_lazy("Tokens used"),
    "remaining_tokens": gettext_lazy("Tokens remaining"),
    "limit_calls": gettext_lazy("Call limit"),
    "spent_calls": gettext_lazy("Calls made"),
    "remaining_calls": gettext_lazy("Calls remaining"),
    "limit_wall_seconds": gettext_lazy("Time limit (seconds)"),
    "spent_wall_seconds": gettext_lazy("Time used (seconds)"),
    "remaining_wall_seconds": gettext_lazy("Time remaining (seconds)"),
    # What a notice counts.
    "times": gettext_lazy("times"),
    "findings": gettext_lazy("findings"),
    "proposals": gettext_lazy("proposals"),
    # Why something was given up or turned off.
    "failed": gettext_lazy("failed"),
    "timeout": gettext_lazy("timed out"),
    "unreachable": gettext_lazy("couldn't be reached"),
    "unavailable": gettext_lazy("not available"),
    "worker_lost": gettext_lazy("the worker process was lost"),
    "nothing_written": gettext_lazy("nothing was recorded"),
    "not_opted_in": gettext_lazy("not allowed to run in the owner's name"),
    "done": gettext_lazy("done"),
    "completed": gettext_lazy("completed"),
    "idle_timeout": gettext_lazy("idle for too long"),
    "cost_cap_reached": gettext_lazy("spending limit reached"),
    "budget_tokens": gettext_lazy("token limit reached"),
    "budget_tool_calls": gettext_lazy("call limit reached"),
    "budget_wall_clock": gettext_lazy("time limit reached"),
    "global_daily": gettext_lazy("daily spending limit reached"),
    "global_monthly": gettext_lazy("monthly spending limit reached"),
    "tool_not_granted": gettext_lazy("a tool isn't allowed"),
    "approval_missing": gettext_lazy("an action wasn't approved"),
}


def code_label(code: str) -> str:
    """Return the label of a stored code as it is written within a sentence; "" for a code without one."""
    if code in CODE_LABELS:
        return str(CODE_LABELS[code])
    for choices in (GateCode, AuthStrategy, SpawnRefusal, WorkReason):
        if code in choices.values:
            return inline_label(choices(code).label).rstrip(".")
    return ""


def inline_start(text: str) -> str:
    """Return the text with a small first letter, except in German, where it may be a noun."""
    return text if (get_language() or "").startswith("de") else text[:1].lower() + text[1:]


def inline_label(label: str | Promise) -> str:
    """Return the label in lower case, except in German, which capitalises nouns."""
    return str(label) if (get_language() or "").startswith("de") else str(label).lower()
