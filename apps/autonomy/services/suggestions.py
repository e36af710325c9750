"""Suggest what could be done next: found by plain looks at rows, put before a person as a card that opens nothing.

Always holds: `do it` never does it: it puts a pattern forward, owes a plan that asks for its own yes, or says that a
person sees to it; one deployment's suggestions come one after the other, so that limits hold under any race. Only where
unattended work is switched on (spec 11: suggestions need the scheduler). Web processes only (spec 5.1.6).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.db.models import QuerySet

from apps.approvals.asks import About, Binding, CardText
from apps.approvals.enums import ApprovalScope, ApprovalVerdict, CardKind, CardStatus
from apps.approvals.models import Card, Decision
from apps.approvals.services import open_card
from apps.audit.enums import AuditEvent
from apps.audit.services import record
from apps.autonomy import queries, suggestion_policy
from apps.autonomy.enums import PrecedentState, SuggestionAction, SuggestionSource, SuggestionState
from apps.autonomy.models import AutonomySettings, InitiativeSettings, Outcome, Precedent, Suggestion, Task
from apps.autonomy.services import bus_messages, precedents
from apps.autonomy.services.calibration import initiative_settings, record_dismissal
from apps.autonomy.suggestion_policy import PastSuggestion, SuggestionLimits
from apps.tenants.models import Deployment
from apps.work.enums import WorkItemStatus, WorkItemType
from apps.work.models import WorkItem
from kernel.canonical import sha256_hex
from kernel.clock import now
from kernel.errors import SilasError
from kernel.unicode_safety import escape_hidden, truncate

SUGGESTION = "suggestion"
LATER, NEVER = "later", "never"
_OFTEN, _MANY_CARDS, _LONG = 3, 5, timedelta(hours=24)
_STEPS = 3
_STATES = {
    LATER: SuggestionState.DEFERRED,
    NEVER: SuggestionState.MUTED,
    "approve": SuggestionState.ACCEPTED,
    "decline": SuggestionState.DISMISSED,
}


@dataclass(frozen=True)
class Idea:
    """`subject`: the row that it is about. `do_it`: what the button brings about, in words."""

    source: SuggestionSource
    action: SuggestionAction
    subject: str
    intent: str
    rationale: str
    key: str
    do_it: str


def deployments_to_check() -> list[UUID]:
    """All that are enabled where unattended work is on; otherwise those about which somebody decided something in the
    last day."""
    rows = Deployment.objects.filter(enabled=True)
    if not queries.autonomy_settings().enabled:
        rows = rows.filter(pk__in=_decided_lately().values("deployment"))
    return list(rows.values_list("pk", flat=True))


def next_check() -> datetime | None:
    """When the company is looked at again; None where unattended work is off and nobody decided anything lately. What
    is decided at this moment is looked at with the next decision."""
    settings = AutonomySettings.objects.select_for_update(no_key=True).first()
    goes_on = (settings is not None and settings.enabled) or _decided_lately().exists()
    return now() + timedelta(seconds=bus_messages.SUGGESTION_INTERVAL_SECONDS) if goes_on else None


def _decided_lately() -> QuerySet[Outcome]:
    recent: QuerySet[Outcome] = Outcome.objects.filter(decided_at__gt=now() - timedelta(days=1))
    return recent


def suggest_from_rows(deployment_id: UUID) -> list[Suggestion]:
    """Suggest what a look at the rows brings up."""
    return _suggest(deployment_id, _ideas(deployment_id))


def suggest_after_work(item_id: UUID) -> list[Suggestion]:
    """Suggest what a finished piece of work says should come next."""
    item: WorkItem | None = WorkItem.objects.filter(pk=item_id, status=WorkItemStatus.DONE).first()
    if item is None or item.deployment_id is None:
        return []
    return _suggest(item.deployment_id, _next_steps(item))


def _suggest(deployment_id: UUID, ideas: Iterator[Idea]) -> list[Suggestion]:
    settings = initiative_settings()
    if not settings.suggestions or not queries.autonomy_settings().enabled:
        return []
    rows = Deployment.objects.select_for_update(of=("self",), no_key=True)
    deployment = rows.filter(pk=deployment_id, enabled=True).first()
    if deployment is None:
        return []
    _expire(deployment)
    made = (_made(deployment, idea, settings) for idea in ideas)
    return [each for each in made if each is not None]


def _made(deployment: Deployment, idea: Idea, settings: InitiativeSettings) -> Suggestion | None:
    """The suggestion and its card; None where it is not its time."""
    moment = now()
    if suggestion_policy.hold_reason(idea.key, _past(deployment), _allowed(settings), now=moment) is not None:
        return None
    row: Suggestion = Suggestion.objects.create(
        deployment=deployment,
        source=idea.source,
        action=idea.action,
        subject=idea.subject,
        intent=truncate(escape_hidden(" ".join(idea.intent.split())), 300),
        rationale=truncate(escape_hidden(idea.rationale), 500),
        cooldown_key=idea.key,
        created_at=moment,
        expires_at=moment + timedelta(hours=settings.expire_hours),
    )
    card = _open(row, idea, seconds=settings.expire_hours * 3600)
    Suggestion.objects.filter(pk=row.pk).update(card_id=card.pk)
    data = {"source": row.source, "action": row.action}
    record(AuditEvent.SUGGESTED, subject=f"suggestion:{row.pk}", data=data)
    return row


def _past(deployment: Deployment) -> list[PastSuggestion]:
    rows = Suggestion.objects.filter(deployment=deployment).order_by("-created_at")[:1000]
    return [
        PastSuggestion(row.cooldown_key, SuggestionState(row.state), row.created_at, row.expires_at, row.handled_at)
        for row in rows
    ]


def _allowed(settings: InitiativeSettings) -> SuggestionLimits:
    return SuggestionLimits(
        cooldown=timedelta(minutes=settings.cooldown_minutes),
        dedupe=timedelta(minutes=settings.dedupe_minutes),
        most_open=settings.most_open,
        most_an_hour=settings.most_an_hour,
    )


def _expire(deployment: Deployment) -> None:
    late = Suggestion.objects.filter(deployment=deployment, state=SuggestionState.OPEN, expires_at__lte=now())
    late.update(state=SuggestionState.EXPIRED)


def _open(row: Suggestion, idea: Idea, *, seconds: int) -> Card:
    return open_card(
        CardKind.SUGGESTION,
        about=About(SUGGESTION, row.pk, row.deployment_id, requested_by="suggestions"),
        binding=Binding(
            ApprovalScope.SINGLE_STEP,
            {
                "suggestion_id": str(row.pk),
                "scope_id": str(row.deployment_id),
                "source": row.source,
                "proposed_work_item_id": idea.subject.removeprefix("work:")
                if idea.subject.startswith("work:")
                else None,
                "cooldown_key": row.cooldown_key,
                "options": [
                    {"label": "Remind me later", "value": LATER},
                    {"label": "Do not suggest this again", "value": NEVER},
                ],
            },
            reversible=True,
        ),
        text=CardText(
            intent=row.intent,
            rationale=row.rationale,
            consequence={"approve": idea.do_it, "decline": "Not now"},
        ),
        seconds=seconds,
    )


def apply_decision(card: Card, decision: Decision) -> None:
    """A person answered; the card is locked, so it is answered once."""
    row = Suggestion.objects.filter(pk=card.subject_id, state=SuggestionState.OPEN).first()
    if row is None:
        return
    state = _STATES[str(decision.said.get("choice", "decline"))]
    accepted = state is SuggestionState.ACCEPTED and decision.verdict == ApprovalVerdict.APPROVED
    led_to = _lead_on(row, decision.user) if accepted else ""
    Suggestion.objects.filter(pk=row.pk).update(state=state, decided_by=decision.user, handled_at=now(), led_to=led_to)
    if state is SuggestionState.DISMISSED:
        record_dismissal(row)
    record(
        AuditEvent.SUGGESTION_HANDLED,
        actor=f"user:{decision.user_id}",
        subject=f"suggestion:{row.pk}",
        data={"state": state.value, "led_to": led_to},
    )


def _lead_on(row: Suggestion, user: Any) -> str:
    """What `do it` brings about. What it was about may be gone by now; then nothing."""
    kind, _, ref = row.subject.partition(":")
    match SuggestionAction(row.action):
        case SuggestionAction.PROMOTE:
            try:
                return f"context:{precedents.promote_precedent(UUID(ref), user=user).pk}"
            except SilasError:
                return ""
        case SuggestionAction.PLAN:
            bus_messages.enqueue_review(bus_messages.PLAN, row.pk)
            return row.subject
        case SuggestionAction.LOOK:
            return f"{kind}:{ref}"


# --- what a look brings up


def _ideas(deployment_id: UUID) -> Iterator[Idea]:
    yield from _parked_goals(deployment_id)
    yield from _set_aside_tasks(deployment_id)
    yield from _waiting_cards(deployment_id)
    yield from _patterns(deployment_id)


def _parked_goals(deployment_id: UUID) -> Iterator[Idea]:
    parked = WorkItem.objects.filter(
        deployment_id=deployment_id, type=WorkItemType.GOAL, status=WorkItemStatus.PAUSED
    ).order_by("created_at")
    for goal in parked[:_STEPS]:
        yield Idea(
            SuggestionSource.GOAL_MONITOR,
            SuggestionAction.LOOK,
            f"work:{goal.pk}",
            f"Look at “{goal.title}”",
            "Its budget is used up, and it rests until somebody has looked.",
            f"goal:{goal.pk}",
            "Say that you look at it",
        )


def _set_aside_tasks(deployment_id: UUID) -> Iterator[Idea]:
    tasks = Task.objects.filter(deployment_id=deployment_id, deleted_at=None).exclude(quarantined_at=None)
    for task in tasks.order_by("quarantined_at")[:_STEPS]:
        yield Idea(
            SuggestionSource.IDLE_HEARTBEAT,
            SuggestionAction.LOOK,
            f"task:{task.pk}",
            f"Look at the task “{task.name}”",
            "It failed too often and does not run until somebody releases it.",
            f"task:{task.pk}",
            "Say that you look at it",
        )


def _waiting_cards(deployment_id: UUID) -> Iterator[Idea]:
    old = Card.objects.filter(
        deployment_id=deployment_id, status__in=[CardStatus.OPEN, CardStatus.ASSIGNED], created_at__lte=now() - _LONG
    ).exclude(kind=CardKind.SUGGESTION)
    if (count := old.count()) >= _MANY_CARDS:
        yield Idea(
            SuggestionSource.IDLE_HEARTBEAT,
            SuggestionAction.LOOK,
            f"deployment:{deployment_id}",
            f"Decide the {count} cards that have waited for a day",
            "Some of them will run out, and nothing happens then.",
            "cards",
            "Say that you go through them",
        )


def _patterns(deployment_id: UUID) -> Iterator[Idea]:
    often = Precedent.objects.filter(
        task__deployment_id=deployment_id, state=PrecedentState.OPEN, quarantined_at=None, count__gte=_OFTEN
    )
    for precedent in often.order_by("-count", "pk")[:_STEPS]:
        yield Idea(
            SuggestionSource.IDLE_HEARTBEAT,
            SuggestionAction.PROMOTE,
            f"precedent:{precedent.pk}",
            f"Tell the bot: {precedent.summary}",
            f"Seen {precedent.count} times.",
            f"precedent:{precedent.pk}",
            "Put it forward, to be decided",
        )


def _next_steps(item: WorkItem) -> Iterator[Idea]:
    """Lines that the executor wrote and the gates let through; each wording once, whichever work it follows."""
    for line in item.next_steps[:_STEPS]:
        words = " ".join(str(line).split())
        if words:
            yield Idea(
                SuggestionSource.POST_EXECUTION,
                SuggestionAction.PLAN,
                f"work:{item.pk}",
                f"Next: {words}",
                f"“{item.title}” is done, and this would follow.",
                f"step:{sha256_hex(words.casefold())[:40]}",
                "Have it planned, and asked about",
            )
