"""Which rows does this room lock, and in which order? An agent, its execution, a hold, its challenge, tries by key."""

from __future__ import annotations

from uuid import UUID

from apps.safety.models import Challenge, Execution, FailedTries, Hold, SafetyAgent
from kernel.clock import now

LONGEST_NAME = 120


def lock_agent(principal: str, name: str) -> SafetyAgent:
    """The agent of this name, made if it is new, locked until the scope ends: its reports wait for each other."""
    key = {"principal": principal, "name": name.strip().lower()[:LONGEST_NAME]}
    SafetyAgent.objects.bulk_create([SafetyAgent(**key)], ignore_conflicts=True)
    found: SafetyAgent = SafetyAgent.objects.select_for_update(no_key=True).get(**key)
    return found


def lock_execution(execution_id: UUID) -> Execution:
    found: Execution = Execution.objects.select_for_update(no_key=True).get(pk=execution_id)
    return found


def lock_hold(hold_id: UUID) -> Hold | None:
    """With its execution, if it has one, whose lock comes first as in a report."""
    execution_id = Hold.objects.filter(pk=hold_id).values_list("execution_id", flat=True).first()
    if execution_id is not None:
        lock_execution(execution_id)
    found: Hold | None = (
        Hold.objects.select_for_update(of=("self",), no_key=True).select_related("agent").filter(pk=hold_id).first()
    )
    return found


def lock_challenge(challenge_id: UUID) -> Challenge | None:
    """With its hold, the hold's lock first."""
    hold_id = Challenge.objects.filter(pk=challenge_id).values_list("hold_id", flat=True).first()
    if hold_id is None:
        return None
    hold = lock_hold(hold_id)
    found: Challenge = Challenge.objects.select_for_update(no_key=True).get(pk=challenge_id)
    assert hold is not None
    found.hold = hold
    return found


def lock_tries(keys: list[str]) -> list[FailedTries]:
    """A row for each key, made if there is none, in the order of keys."""
    moment = now()
    rows = [FailedTries(key=key, window_start=moment) for key in keys]
    FailedTries.objects.bulk_create(rows, ignore_conflicts=True)
    return list(FailedTries.objects.select_for_update(no_key=True).filter(key__in=keys).order_by("key"))
