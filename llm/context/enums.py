"""Zones, item kinds and eviction reasons of a context window (contract silas 2 and 7)."""

from __future__ import annotations

from enum import StrEnum


class Zone(StrEnum):
    SYSTEM = "system"
    CHRONICLE = "chronicle"
    MEMORY = "memory"
    WORKSPACE = "workspace"

    # Zones are keys in a loop over thousands of items; an enum's own hash is a call into Python.
    __hash__ = str.__hash__


class Kind(StrEnum):
    MESSAGE = "message"
    TOOL_CALL = "tool_call"
    TOOL_RESULT = "tool_result"
    MEMORY = "memory"
    PLAN = "plan"
    EXECUTION_RESULT = "execution_result"
    SUBSCRIPTION = "subscription"
    SYSTEM = "system"


class Reason(StrEnum):
    """Why something is not in the window, or only its placeholder is."""

    MASKED = "masked"
    TRIVIAL = "trivial"
    STALE_SUBSCRIPTION = "stale_subscription"
    SUBSCRIPTION_TOO_LARGE = "subscription_too_large"
    ZONE_FULL = "zone_full"
    SCORED = "scored"
    WINDOW_FULL = "window_full"
    METADATA_FULL = "metadata_full"
