"""Metrics of turns: how they ended, and how long they took from opened to closed. No text, and no id as a label."""

from __future__ import annotations

from enum import StrEnum

from opentelemetry import metrics


class TurnOutcome(StrEnum):
    ANSWERED = "answered"
    STOPPED = "stopped"
    FAILED = "failed"
    LEASE_LOST = "lease_lost"


_meter = metrics.get_meter("silas.sessions")
_turns = _meter.create_counter("turns", description="Turns that ended")
_durations = _meter.create_histogram(
    "turn_duration",
    unit="s",
    description="From opened to closed",
    explicit_bucket_boundaries_advisory=(0.1, 0.25, 0.5, 1, 2, 4, 8, 15, 30, 60, 120),
)


def turn_ended(outcome: TurnOutcome, seconds: float) -> None:
    _turns.add(1, {"outcome": outcome.value})
    _durations.record(seconds, {"outcome": outcome.value})
