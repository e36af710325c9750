"""Which events of the log are kept out of every page but Everything? Part of `groups`."""

from __future__ import annotations

# What only "Everything" shows: the platform's own looks and upkeep, opinions that decide nothing, what a bot noted for
# itself.
QUIET = frozenset(
    {
        "platform_scope_entered",
        "messages_cleared",
        "retention_swept",
        "alerts_sent",
        "quality_gate",
        "safety_started",
        "safety_ended",
        "safety_judged",
        "safety_refused",
        "gate_left_out",
        "memory_ops",
        "context_profile_changed",
    }
)
