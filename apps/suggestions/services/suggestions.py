"""Suggest what could be done next, from plain queries, as cards.

Accepting a suggestion never runs it: it proposes a pattern as a rule, requests a plan that needs its own approval, or
records that a person looks at it. A deployment's suggestions are made under its lock, so that limits hold under any
race. Only where automations are enabled (spec 11). In web processes and trusted workers (spec 5.1.6).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from uuid import UUID

from apps.approvals.cards.schemas import Binding, CardSubject, CardText
from apps.approvals.cards.services import open_card
from apps.approvals.enums import ApprovalScope, ApprovalVerdict, CardKind, CardStatus
from apps.approvals.models import ApprovalToken, Card, Decision
from apps.audit.enums import AuditEvent
from apps.audit.services import record
from apps.autonomy.enums import PrecedentState
from apps.autonomy.models import Precedent, Task
from apps.autonomy.queries import autonomy_settings
from apps.autonomy.services import precedents
from apps.autonomy.services.bus_messages import enqueue_review
from apps.suggestions import suggestion_policy
from apps.suggestions.enums import SuggestionAction, SuggestionSource, SuggestionState
from apps.suggestions.models import InitiativeSettings, Suggestion
from apps.suggestions.queries import initiative_settings
from apps.suggestions.services.outcomes import record_dismissal
from apps.suggestions.suggestion_policy import PastSuggestion, SuggestionLimits
from apps.tenants.models import Deployment, User
from apps.work.enums import WorkItemStatus, WorkItemType
from apps.work.models import WorkItem
from kernel.canonical import sha256_hex
from kernel.clock import now
from kernel.errors import SilasError
from kernel.stored_texts import stored_text
from kernel.unicode_safety import escape_hidden, truncate

SUGGESTION = "suggestion"
# Events of `REVIEW_OWED`; the values are stored in messages.
AFTER_WORK, PLAN = "after_work", "plan"
LATER, NEVER = "later", "never"
_MIN_SEEN, _MIN_OLD_CARDS, _OLD_CARD_AGE = 3, 5, timedelta(hours=24)
_MOST_OF_A_KIND = 3
_STATES = {
    LATER: SuggestionState.DEFERRED,
    NEVER: SuggestionState.MUTED,
    "approve": SuggestionState.ACCEPTED,
    "decline": SuggestionState.DISMISSED,
}


@dataclass(frozen=True)
class Idea:
    """A possible suggestion. `subject`: the row that it is about; `do_it`: what accepting it does, in words."""

    source: SuggestionSource
    action: SuggestionAction
    subject: str
    intent: str
    rationale: str
    key: str
    do_it: str


def suggest_from_rows(deployment_id: UUID) -> list[Suggestion]:
    """Make the suggestions that the deployment's rows give reason for."""
    return _suggest(deployment_id, _ideas(deployment_id))


def suggest_after_work(item_id: UUID) -> list[Suggestion]:
    """Suggest the next steps that finished work names."""
    item: WorkItem | None = WorkItem.objects.filter(pk=item_id, status=WorkItemStatus.DONE).first()
    if item is None or item.deployment_id is None:
        return []
    return _suggest(item.deployment_id, _next_steps(item))


def _suggest(deployment_id: UUID, ideas: Iterator[Idea]) -> list[Suggestion]:
    settings = initiative_settings()
    if not settings.suggestions or not autonomy_settings().enabled:
        return []
    # The lock makes the limits hold: suggestions of one deployment are counted and made one after the other.
    rows = Deployment.objects.select_for_update(of=("self",), no_key=True)
    deployment = rows.filter(pk=deployment_id, enabled=True).first()
    if deployment is None:
        return []
    expired = Suggestion.objects.filter(deployment=deployment, state=SuggestionState.OPEN, expires_at__lte=now())
    expired.update(state=SuggestionState.EXPIRED)
    made = (_suggest_one(deployment, idea, settings) for idea in ideas)
    return [suggestion for suggestion in made if suggestion is not None]


def _suggest_one(deployment: Deployment, idea: Idea, settings: InitiativeSettings) -> Suggestion | None:
    """Create the suggestion and its card; None where a limit or cooldown holds it back."""
    moment = now()
    if (
        suggestion_policy.hold_reason(idea.key, _past_suggestions(deployment), _limits(settings), now=moment)
        is not None
    ):
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
    card = _open_card(row, idea, seconds=settings.expire_hours * 3600)
    Suggestion.objects.filter(pk=row.pk).update(card_id=card.pk)
    data = {"source": row.source, "action": row.action}
    record(AuditEvent.SUGGESTED, subject=f"suggestion:{row.pk}", data=data)
    return row


def _past_suggestions(deployment: Deployment) -> list[PastSuggestion]:
    rows = Suggestion.objects.filter(deployment=deployment).order_by("-created_at")[:1000]
    return [
        PastSuggestion(row.cooldown_key, SuggestionState(row.state), row.created_at, row.expires_at, row.handled_at)
        for row in rows
    ]


def _limits(settings: InitiativeSettings) -> SuggestionLimits:
    return SuggestionLimits(
        cooldown=timedelta(minutes=settings.cooldown_minutes),
        dedupe=timedelta(minutes=settings.dedupe_minutes),
        most_open=settings.most_open,
        most_an_hour=settings.most_an_hour,
    )


def _open_card(row: Suggestion, idea: Idea, *, seconds: int) -> Card:
    return open_card(
        CardKind.SUGGESTION,
        subject=CardSubject(SUGGESTION, row.pk, row.deployment_id, requested_by="suggestions"),
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
                    {"label": stored_text("Remind me later"), "value": LATER},
                    {"label": stored_text("Don't suggest this again"), "value": NEVER},
                ],
            },
            reversible=True,
        ),
        text=CardText(
            intent=row.intent,
            rationale=row.rationale,
            consequence={"approve": idea.do_it, "decline": stored_text("Not now")},
        ),
        seconds=seconds,
    )


def apply_decision(card: Card, decision: Decision, token: ApprovalToken | None) -> None:
    """Apply the decision about a suggestion. The card is locked, so this happens once."""
    row = Suggestion.objects.filter(pk=card.subject_id, state=SuggestionState.OPEN).first()
    if row is None:
        return
    state = _STATES[str(decision.said.get("choice", "decline"))]
    accepted = state is SuggestionState.ACCEPTED and decision.verdict == ApprovalVerdict.APPROVED
    led_to = _carry_out(row, decision.user) if accepted else ""
    Suggestion.objects.filter(pk=row.pk).update(state=state, decided_by=decision.user, handled_at=now(), led_to=led_to)
    if state is SuggestionState.DISMISSED:
        record_dismissal(row, user=decision.user)
    record(
        AuditEvent.SUGGESTION_HANDLED,
        actor=f"user:{decision.user_id}",
        subject=f"suggestion:{row.pk}",
        data={"state": state.value, "led_to": led_to},
    )


def _carry_out(row: Suggestion, user: User) -> str:
    """Do what accepting the suggestion leads to; "" if its subject is gone by now."""
    kind, _, ref = row.subject.partition(":")
    match SuggestionAction(row.action):
        case SuggestionAction.PROMOTE:
            try:
                return f"context:{precedents.promote_precedent(UUID(ref), user=user).pk}"
            except SilasError:
                return ""
        case SuggestionAction.PLAN:
            enqueue_review(PLAN, row.pk)
            return row.subject
        case SuggestionAction.LOOK:
            return f"{kind}:{ref}"


# --- ideas


def _ideas(deployment_id: UUID) -> Iterator[Idea]:
    yield from _parked_goals(deployment_id)
    yield from _set_aside_tasks(deployment_id)
    yield from _waiting_cards(deployment_id)
    yield from _patterns(deployment_id)


def _parked_goals(deployment_id: UUID) -> Iterator[Idea]:
    parked = WorkItem.objects.filter(
        deployment_id=deployment_id, type=WorkItemType.GOAL, status=WorkItemStatus.PAUSED
    ).order_by("created_at")
    for goal in parked[:_MOST_OF_A_KIND]:
        yield Idea(
            SuggestionSource.GOAL_MONITOR,
            SuggestionAction.LOOK,
            f"work:{goal.pk}",
            stored_text("Review the goal “{goal}”").format(goal=goal.title),
            stored_text("Its budget is used up. It is paused until someone reviews it."),
            f"goal:{goal.pk}",
            stored_text("I'll look at it"),
        )


def _set_aside_tasks(deployment_id: UUID) -> Iterator[Idea]:
    tasks = Task.objects.filter(deployment_id=deployment_id, deleted_at=None).exclude(quarantined_at=None)
    for task in tasks.order_by("quarantined_at")[:_MOST_OF_A_KIND]:
        yield Idea(
            SuggestionSource.IDLE_HEARTBEAT,
            SuggestionAction.LOOK,
            f"task:{task.pk}",
            stored_text("Review the task “{task}”").format(task=task.name),
            stored_text("It failed too often and is paused until someone releases it."),
            f"task:{task.pk}",
            stored_text("I'll look at it"),
        )


def _waiting_cards(deployment_id: UUID) -> Iterator[Idea]:
    waiting = Card.objects.filter(
        deployment_id=deployment_id,
        status__in=[CardStatus.OPEN, CardStatus.ASSIGNED],
        created_at__lte=now() - _OLD_CARD_AGE,
    ).exclude(kind=CardKind.SUGGESTION)
    if (count := waiting.count()) >= _MIN_OLD_CARDS:
        yield Idea(
            SuggestionSource.IDLE_HEARTBEAT,
            SuggestionAction.LOOK,
            f"deployment:{deployment_id}",
            stored_text("Decide {count:d} cards that have waited for more than a day").format(count=count),
            stored_text("Cards that expire are rejected."),
            "cards",
            stored_text("I'll review them"),
        )


def _patterns(deployment_id: UUID) -> Iterator[Idea]:
    frequent = Precedent.objects.filter(
        task__deployment_id=deployment_id, state=PrecedentState.OPEN, quarantined_at=None, count__gte=_MIN_SEEN
    )
    for precedent in frequent.order_by("-count", "pk")[:_MOST_OF_A_KIND]:
        yield Idea(
            SuggestionSource.IDLE_HEARTBEAT,
            SuggestionAction.PROMOTE,
            f"precedent:{precedent.pk}",
            stored_text("Tell the bot: {text}").format(text=precedent.summary),
            stored_text("Seen {count:d} times.").format(count=precedent.count),
            f"precedent:{precedent.pk}",
            stored_text("Propose it for a decision"),
        )


def _next_steps(item: WorkItem) -> Iterator[Idea]:
    """Next steps that the executor wrote and the gates let through; each wording once, across all work."""
    for line in item.next_steps[:_MOST_OF_A_KIND]:
        step = " ".join(str(line).split())
        if step:
            yield Idea(
                SuggestionSource.POST_EXECUTION,
                SuggestionAction.PLAN,
                f"work:{item.pk}",
                stored_text("Next: {step}").format(step=step),
                stored_text("“{title}” is done. This would be the next step.").format(title=item.title),
                f"step:{sha256_hex(step.casefold())[:40]}",
                stored_text("Plan it and ask for approval"),
            )
