"""Which rows does this room lock, and in which order? An agent, its execution, a hold, its challenge, tries by key."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import connection

from apps.safety.models import Challenge, Execution, FailedTries, Hold, SafetyAgent
from apps.safety.queries import policy_said
from apps.safety.schemas import Policy
from kernel.clock import now
from kernel.tenancy import current_tenant_id

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


@dataclass(frozen=True)
class Report:
    """What an agent's report begins with. `block`: what holds its principal; then, and where no execution runs, there
    is none. `quiet`: nothing holds the execution, and no block has to be told of."""

    agent: SafetyAgent
    block: UUID | None = None
    execution: Execution | None = None
    policy: Policy | None = None
    quiet: bool = False


def lock_report(principal: str, name: str, execution_id: UUID | None) -> Report:
    """`lock_agent`, then its execution, one step further; one call of the database (`report_sql`)."""
    moment, name = now(), known_as(name)
    with connection.cursor() as cursor:
        given: list[Any] = [current_tenant_id(), principal, name, execution_id, moment]
        cursor.execute("SELECT safety_report(%s, %s, %s, %s, %s)", given)
        told = cursor.fetchone()[0]
    said = json.loads(told) if isinstance(told, str) else told
    tenant = current_tenant_id()
    agent = SafetyAgent(id=UUID(said["agent"]), tenant_id=tenant, principal=principal, name=name)
    if "block" in said:
        return Report(agent, block=UUID(said["block"]))
    if "execution" not in said:
        return Report(agent)
    execution = Execution(
        id=UUID(said["execution"]),
        tenant_id=tenant,
        agent=agent,
        steps=said["steps"],
        granted_at=said["granted_at"],
        started_at=datetime.fromisoformat(said["started_at"]),
        last_at=moment,
    )
    return Report(agent, None, execution, policy_said(said["policy"]), not said["held"] and not said["told"])


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
