"""Row locks of the safety loop, in this order: step window, agent, execution, hold, challenge, failed tries by key."""

from __future__ import annotations

from uuid import UUID

from apps.safety.models import Challenge, Execution, FailedTries, Hold, SafetyAgent, StepWindow
from kernel.clock import now

MAX_NAME_LENGTH = 120


def normalize_name(name: str) -> str:
    """Normalise the name that distinguishes agents of one principal."""
    return name.strip().lower()[:MAX_NAME_LENGTH]


def lock_agent(principal: str, name: str) -> SafetyAgent:
    """Get or create the agent of this name and lock it until the scope ends, so that its reports are serialised."""
    key = {"principal": principal, "name": normalize_name(name)}
    SafetyAgent.objects.bulk_create([SafetyAgent(**key)], ignore_conflicts=True)
    return SafetyAgent.objects.select_for_update(no_key=True).get(**key)


def lock_step_window(principal: str) -> StepWindow:
    """Get or create the principal's step window and lock it until the scope ends. Locked before the agent."""
    StepWindow.objects.bulk_create([StepWindow(principal=principal, started_at=now())], ignore_conflicts=True)
    return StepWindow.objects.select_for_update(no_key=True).get(principal=principal)


def lock_reporting(principal: str, name: str) -> tuple[StepWindow, SafetyAgent]:
    """Lock what every operation of an outside agent locks first: the principal's step window, then the agent."""
    return lock_step_window(principal), lock_agent(principal, name)


def lock_execution(execution_id: UUID) -> Execution:
    return Execution.objects.select_for_update(no_key=True).get(pk=execution_id)


def lock_hold(hold_id: UUID) -> Hold | None:
    """Lock the hold, after its principal's step window and its execution if it has one, as a report does."""
    row = Hold.objects.filter(pk=hold_id).values_list("principal", "execution_id").first()
    if row is None:
        return None
    principal, execution_id = row
    if execution_id is not None:
        lock_step_window(principal)
        lock_execution(execution_id)
    return Hold.objects.select_for_update(of=("self",), no_key=True).select_related("agent").filter(pk=hold_id).first()


def lock_challenge(challenge_id: UUID) -> Challenge | None:
    """Lock the challenge and its hold, the hold first."""
    hold_id = Challenge.objects.filter(pk=challenge_id).values_list("hold_id", flat=True).first()
    if hold_id is None:
        return None
    hold = lock_hold(hold_id)
    found: Challenge = Challenge.objects.select_for_update(no_key=True).get(pk=challenge_id)
    assert hold is not None
    found.hold = hold
    return found


def lock_attempts(keys: list[str]) -> list[FailedTries]:
    """Get or create a row for each key and lock them in the order of the keys."""
    moment = now()
    rows = [FailedTries(key=key, window_start=moment) for key in keys]
    FailedTries.objects.bulk_create(rows, ignore_conflicts=True)
    return list(FailedTries.objects.select_for_update(no_key=True).filter(key__in=keys).order_by("key"))
