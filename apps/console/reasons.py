"""In which words is a code of the log told? Part of `sentences`."""

from __future__ import annotations

from apps.autonomy.enums import SpawnRefusal
from apps.guard.enums import Holder
from apps.work.enums import CycleOutcome, WorkReason

REASONS: dict[str, str] = {
    **{code: str(label) for code, label in (*WorkReason.choices, *CycleOutcome.choices, *Holder.choices)},
    "": "no reason was given",
    "passkey_refused": "its answer did not hold",
    "passkey_counter": "it may have been copied",
    "cost_cap_reached": "the next call would have cost more than is left",
    "global_daily": "the day's limit is reached",
    "global_monthly": "the month's limit is reached",
    "external_halt": "a person asked for it",
    **{code: str(label).rstrip(".").lower() for code, label in SpawnRefusal.choices},
    "intake": "collecting",
    "analysis": "thinking",
    "drafting": "writing down",
    "ethics_review": "looking it over",
    "delivery": "handing over",
    "idle_timeout": "it did nothing for too long",
    "budget_tokens": "its model tokens are used up",
    "budget_tool_calls": "its calls are used up",
    "budget_wall_clock": "its time is used up",
    "worker_lost": "the process that ran it is gone",
    "tool_not_granted": "it is not allowed here",
    "approval_required": "it needs a person's approval",
    "review_required": "a gate asks for a person, and nobody is there to look",
    "approval_missing": "nobody has approved exactly this",
    "approval_spent": "it was carried out before and is not done twice",
}
