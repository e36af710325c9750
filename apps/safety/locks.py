"""Row locks of the safety loop, in this order: step window, agent, execution, hold, challenge, failed tries by key."""

from __future__ import annotations

from uuid import UUID

from apps.safety.models import Challenge, Execution, FailedTries, Hold, SafetyAgent, StepWindow
from kernel.clock import now

LONGEST_NAME = 120


def known_as(name: str) -> str:
    """The name that tells agents of one principal apart."""
    return name.strip().lower()[:LONGEST_NAME]


def lock_agent(principal: str, name: str) -> SafetyAgent:
    """The agent of this name, made if it is new, locked until the scope ends: its reports wait for each other."""
    key = {"principal": principal, "name": known_as(name)}
    SafetyAgent.objects.bulk_create([SafetyAgent(**key)], ignore_conflicts=True)
    found: SafetyAgent = SafetyAgent.objects.select_for_update(no_key=True).get(**key)
    return found


def lock_step_window(principal: str) -> StepWindow:
    """The principal's step window, made if it is new, locked until the scope ends. Locked before the agent."""
    StepWindow.objects.bulk_create([StepWindow(principal=principal, started_at=now())], ignore_conflicts=True)
    window: StepWindow = StepWindow.objects.select_for_update(no_key=True).get(principal=principal)
    return window


def lock_reporting(principal: str, name: str) -> tuple[StepWindow, SafetyAgent]:
    """What every operation of an outside agent locks first: the principal's step window, then the agent."""
    return lock_step_window(principal), lock_agent(principal, name)


def lock_execution(execution_id: UUID) -> Execution:
    found: Execution = Execution.objects.select_for_update(no_key=True).get(pk=execution_id)
    return found


def lock_hold(hold_id: UUID) -> Hold | None:
    """The hold, after its principal's step window and its execution, if it has one, as in a report."""
    row = Hold.objects.filter(pk=hold_id).values_list("principal", "execution_id").first()
    if row is None:
        return None
    principal, execution_id = row
    if execution_id is not None:
        lock_step_window(principal)
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
