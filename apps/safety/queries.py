"""Reads of the safety loop for the scope's tenant: holds, active policies, reports."""

from __future__ import annotations

import functools
from datetime import datetime
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import connection
from django.db.models import Q, QuerySet

from apps.safety.enums import ChallengeState, ExecutionStatus, HoldKind, HoldState, Mode
from apps.safety.models import Challenge, Execution, Hold, PolicyVersion, SafetyAgent, Step
from apps.safety.schemas import Policy
from apps.tenants.enums import KeyScope
from apps.tenants.models import ApiKey
from kernel.clock import now
from kernel.tenancy import current_tenant_id


def active_version(principal: str) -> PolicyVersion | None:
    """The principal's own newest version, or the common one when it has none or withdrew its own."""
    own = versions_of(principal).first()
    return versions_of("").first() if own is None or own.taken_back else own


def policy_of(principal: str) -> Policy:
    """The active policy, in the mode that the installation may set for all (`MCPAQL_SAFETY_LOOP`)."""
    return _in_mode(stored_policy(principal))


def stored_policy(principal: str) -> Policy:
    """The active policy as written, regardless of the installation's mode."""
    version = active_version(principal)
    return version.policy if version else Policy()


def _in_mode(policy: Policy) -> Policy:
    mode = settings.SAFETY_MODE
    return policy.model_copy(update={"mode": Mode(mode)}) if mode else policy


_BLOCK_AND_POLICY = """
    SELECT (SELECT reason FROM safety_hold WHERE tenant_id = %(tenant)s AND principal = %(principal)s
            AND kind = 'block' AND state = 'open' LIMIT 1),
           coalesce((SELECT CASE WHEN NOT taken_back THEN content::text END FROM safety_policyversion
                     WHERE tenant_id = %(tenant)s AND principal = %(principal)s ORDER BY number DESC LIMIT 1),
                    (SELECT content::text FROM safety_policyversion
                     WHERE tenant_id = %(tenant)s AND principal = '' ORDER BY number DESC LIMIT 1))
"""


def block_and_policy(principal: str) -> tuple[str, Policy]:
    """Why the principal is blocked, or "", and its policy. One statement, because every call that acts needs it."""
    with connection.cursor() as cursor:
        cursor.execute(_BLOCK_AND_POLICY, {"tenant": current_tenant_id(), "principal": principal})
        reason, content = cursor.fetchone()
    return reason or "", parse_policy(content)


def parse_policy(content: str | None) -> Policy:
    """Parse a row's content, or use the default policy; in the installation's mode."""
    return _in_mode(_parsed(content) if content else Policy())


@functools.lru_cache(maxsize=256)
def _parsed(content: str) -> Policy:
    return Policy.model_validate_json(content)


def versions_of(principal: str) -> QuerySet[PolicyVersion]:
    rows: QuerySet[PolicyVersion] = PolicyVersion.objects.filter(principal=principal).order_by("-number")
    return rows


def open_block(principal: str) -> Hold | None:
    found: Hold | None = Hold.objects.filter(principal=principal, kind=HoldKind.BLOCK, state=HoldState.OPEN).first()
    return found


def open_holds() -> QuerySet[Hold]:
    """Holds that wait for a person, blocks first."""
    rows: QuerySet[Hold] = (
        Hold.objects.filter(state=HoldState.OPEN).select_related("agent", "execution").order_by("kind", "-created_at")
    )
    return rows


def pending_challenge(hold: Hold) -> Challenge | None:
    found: Challenge | None = hold.challenges.filter(state=ChallengeState.PENDING).first()
    return found


def running_execution(agent: SafetyAgent, execution_id: UUID | None = None) -> Execution | None:
    """The running execution of that id, or the agent's newest."""
    rows = Execution.objects.filter(agent=agent, status=ExecutionStatus.RUNNING)
    if execution_id is not None:
        rows = rows.filter(pk=execution_id)
    found: Execution | None = rows.order_by("-started_at").first()
    return found


def recent_executions(most: int = 50) -> QuerySet[Execution]:
    rows: QuerySet[Execution] = Execution.objects.select_related("agent").order_by("-last_at")[:most]
    return rows


def recent_steps(most: int = 100, *, principal: str = "") -> QuerySet[Step]:
    rows = Step.objects.select_related("execution__agent").order_by("-created_at")
    found: QuerySet[Step] = (rows.filter(execution__agent__principal=principal) if principal else rows)[:most]
    return found


def principals() -> list[str]:
    """Principals that may have a policy of their own: agents that reported, chatbots that were evaluated, API keys that
    may report, and those that have a policy."""
    known = {*SafetyAgent.objects.values_list("principal", flat=True)}
    own = {*PolicyVersion.objects.exclude(principal="").values_list("principal", flat=True)}
    keys = ApiKey.objects.filter(revoked_at=None).values_list("pk", "scopes")
    return sorted(known | own | {f"api_key:{pk}" for pk, scopes in keys if KeyScope.SAFETY_AGENT in scopes})


def notifications(agent: SafetyAgent, execution: Execution | None) -> list[dict[str, Any]]:
    """Notifications beside the directive: the agent's own pauses, and every block of its company.

    They are read from open holds, so lifting a hold clears them (contract safety-loop 7).
    """
    mine = Q(kind=HoldKind.VERIFY, principal=agent.principal)
    if execution is not None:
        mine |= Q(execution=execution)
    holds = Hold.objects.filter(Q(kind=HoldKind.BLOCK) | mine, state=HoldState.OPEN).select_related("agent")
    return [_notification(hold, agent, now()) for hold in holds.order_by("created_at")]


def _notification(hold: Hold, agent: SafetyAgent, moment: datetime) -> dict[str, Any]:
    age = _age(int((moment - hold.created_at).total_seconds()))
    metadata: dict[str, Any] = {"level": hold.tier}
    challenge = pending_challenge(hold) or hold.challenges.first()
    if challenge is not None:
        metadata["verificationId"] = str(challenge.pk)
    if hold.principal == agent.principal:
        metadata |= {"reason": hold.reason, "operation": hold.hint[:200]}
        message = f"{hold.reason} ({age})"
    else:
        message = f"Another agent of this company, {hold.agent.name!r}, was stopped {age}."
    kind = "danger_zone" if hold.kind == HoldKind.BLOCK else "autonomy_pause"
    return {"type": kind, "message": message, "timestamp": _timestamp(hold.created_at), "metadata": metadata}


def _age(seconds: int) -> str:
    for size, word in ((86_400, "day"), (3600, "hour"), (60, "minute")):
        if seconds >= size:
            count = seconds // size
            return f"{count} {word}{'s' if count > 1 else ''} ago"
    return "just now"


def _timestamp(moment: datetime) -> str:
    return moment.isoformat().replace("+00:00", "Z")
