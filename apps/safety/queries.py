"""Reads of the safety loop for the scope's tenant: holds, active policies, reports, daily figures."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db.models import Count, Q, QuerySet
from django.db.models.functions import TruncDate
from django.utils import timezone

from apps.safety.enums import ChallengeState, Decision, ExecutionStatus, HoldKind, HoldState, Mode
from apps.safety.models import Challenge, Execution, Hold, PolicyVersion, SafetyAgent, Step
from apps.safety.schemas import Policy
from apps.tenants.enums import KeyScope
from apps.tenants.models import ApiKey
from kernel.clock import now


def policy_of(principal: str) -> Policy:
    """The active policy, in the mode that the installation may set for all (`MCPAQL_SAFETY_LOOP`)."""
    policy, mode = stored_policy(principal), settings.SAFETY_MODE
    return policy.model_copy(update={"mode": Mode(mode)}) if mode else policy


def stored_policy(principal: str) -> Policy:
    """The active policy as written: the principal's own newest version, or the common one when it has none or withdrew
    its own."""
    newest = PolicyVersion.objects.filter(principal__in=("", principal)).order_by("-principal", "-number")
    version = next((row for row in newest.distinct("principal") if not row.taken_back), None)
    return version.policy if version else Policy()


def versions_of(principal: str) -> QuerySet[PolicyVersion]:
    return PolicyVersion.objects.filter(principal=principal).order_by("-number")


def open_block(principal: str) -> Hold | None:
    return Hold.objects.filter(principal=principal, kind=HoldKind.BLOCK, state=HoldState.OPEN).first()


def open_holds() -> QuerySet[Hold]:
    """Holds that wait for a person, blocks first."""
    return (
        Hold.objects.filter(state=HoldState.OPEN).select_related("agent", "execution").order_by("kind", "-created_at")
    )


def pending_challenge(hold: Hold) -> Challenge | None:
    return hold.challenges.filter(state=ChallengeState.PENDING).first()


def running_execution(agent: SafetyAgent, execution_id: UUID | None = None) -> Execution | None:
    """The running execution of that id, or the agent's newest."""
    rows = Execution.objects.filter(agent=agent, status=ExecutionStatus.RUNNING)
    if execution_id is not None:
        rows = rows.filter(pk=execution_id)
    return rows.order_by("-started_at").first()


def recent_executions(most: int = 50) -> QuerySet[Execution]:
    return Execution.objects.select_related("agent").order_by("-last_at")[:most]


def recent_steps(most: int = 100, *, principal: str = "") -> QuerySet[Step]:
    rows = Step.objects.select_related("execution__agent").order_by("-created_at")
    return (rows.filter(execution__agent__principal=principal) if principal else rows)[:most]


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
    return [_notification(hold, agent) for hold in holds.order_by("created_at")]


def _notification(hold: Hold, agent: SafetyAgent) -> dict[str, object]:
    age = _age(int((now() - hold.created_at).total_seconds()))
    metadata: dict[str, object] = {"level": hold.tier}
    challenge = pending_challenge(hold) or hold.challenges.first()
    if challenge is not None:
        metadata["verificationId"] = str(challenge.pk)
    if hold.principal == agent.principal:
        metadata |= {"reason": hold.reason, "operation": hold.hint[:200]}
        message = f"{hold.reason} ({age})"
    else:
        message = f"Another agent of this company, {hold.agent.name!r}, was stopped {age}."
    kind = "danger_zone" if hold.kind == HoldKind.BLOCK else "autonomy_pause"
    return {"type": kind, "message": message, "timestamp": wire_time(hold.created_at), "metadata": metadata}


def _age(seconds: int) -> str:
    for size, word in ((86_400, "day"), (3600, "hour"), (60, "minute")):
        if seconds >= size:
            count = seconds // size
            return f"{count} {word}{'s' if count > 1 else ''} ago"
    return "just now"


def wire_time(moment: datetime) -> str:
    """Write a UTC time as the contract does, with Z."""
    return moment.isoformat().replace("+00:00", "Z")


@dataclass(frozen=True)
class Day:
    """Figures of one day: directives given (`told`), how many of them paused or stopped (`held`), and blocks."""

    date: date
    told: int
    held: int
    blocks: int


@dataclass(frozen=True)
class Trends:
    """`asked`: prompts to people; `actions`: the distinct actions that they were for."""

    days: tuple[Day, ...]
    asked: int
    actions: int

    @property
    def prompts(self) -> float:
        """Prompts per action that had to wait. More than one means that people approve the same thing twice."""
        return self.asked / self.actions if self.actions else 0.0


def trends(days: int = 14) -> Trends:
    """Figures of the last days for the console; days are in the installation's time zone."""
    today = timezone.localdate()
    first = today - timedelta(days=days - 1)
    since = timezone.make_aware(datetime.combine(first, time()))
    steps = Step.objects.filter(created_at__gte=since).order_by()
    daily = steps.annotate(day=TruncDate("created_at")).values("day")
    counted = daily.annotate(told=Count("id"), held=Count("id", filter=~Q(decision=Decision.GO)))
    by_day = {row["day"]: (row["told"], row["held"]) for row in counted}
    recent = Hold.objects.filter(created_at__gte=since).order_by()
    holds = list(recent.values_list("kind", "created_at", "digest", "execution_id"))
    blocks = Counter(timezone.localdate(created) for kind, created, _, _ in holds if kind == HoldKind.BLOCK)
    dates = [first + timedelta(days=offset) for offset in range(days)]
    rows = tuple(Day(day, *by_day.get(day, (0, 0)), blocks[day]) for day in dates)
    return Trends(rows, len(holds), len({(digest, execution) for _, _, digest, execution in holds}))
