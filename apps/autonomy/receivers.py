"""What this room hears from below (documents that came in, questions nobody answered, looks at goals, work that ended,
deliveries that failed), and the handlers of its messages. Receivers run in the announcing transaction."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from apps.autonomy import alerting, clock, executor, relay
from apps.autonomy.enums import TaskEvent, Topic
from apps.autonomy.locks import lock_session
from apps.autonomy.models import AutonomousSession
from apps.autonomy.services import consent, ending, notices, questions
from apps.autonomy.services.occurrences import owe
from apps.autonomy.services.sending import owe_webhooks
from apps.autonomy.signals import task_event
from apps.bus.enums import Kind, Queue, SetAside
from apps.bus.models import QueueMessage
from apps.bus.registry import register, register_later, when_dead
from apps.bus.signals import set_aside
from apps.memory.signals import document_stored
from apps.sessions.models import ChatSession
from apps.sessions.signals import question_unanswered
from apps.tenants.enums import Role
from apps.tenants.signals import role_changed
from apps.work import rules as work_rules
from apps.work.enums import CycleOutcome
from apps.work.models import GoalCycle, WorkItem
from apps.work.signals import goal_looked_at, work_changed, work_escalated

# Who stores a document for a session says so: a watch does not fire on what sessions brought about.
OURS = "autonomy:"


@role_changed.connect
def _role(user_id: UUID, role: Role, actor: str) -> None:
    consent.lost_role(user_id, role, actor=actor)


@document_stored.connect
def _document(document_id: UUID, collection_id: UUID, actor: str) -> None:
    if actor.startswith(OURS):
        return
    owe(f"watch:{collection_id}", str(document_id))
    owe(f"event:{Topic.DOCUMENT_STORED}", str(document_id))


@question_unanswered.connect
def _question(session: ChatSession, text: str) -> None:
    if not session.is_test and questions.keep_open(session, text):
        owe(f"event:{Topic.QUESTION_UNANSWERED}", str(session.pk))


@goal_looked_at.connect
def _goal(cycle: GoalCycle) -> None:
    owe(f"goal-all:{cycle.goal_id}", str(cycle.goal_id))
    if cycle.outcome != CycleOutcome.HEALTHY:
        owe(f"goal:{cycle.goal_id}", str(cycle.goal_id))
    owe(f"event:{Topic.GOAL_LOOKED_AT}", str(cycle.goal_id))


@work_changed.connect
def _work(item: WorkItem, status: str, text: str, next_steps: list[str]) -> None:
    if item.status in work_rules.FINAL:
        owe(f"event:{Topic.WORK_ENDED}", str(item.pk))
    decided = ending.decision_in(item.status)
    if decided is not None:
        ending.answered(item.pk, approved=decided)


@work_escalated.connect
def _wanted(item: WorkItem, text: str, needs_person: bool) -> None:
    if needs_person:
        owe(f"event:{Topic.PERSON_WANTED}", str(item.pk))
    if item.session_id is None and not item.is_part:
        set_aside(SetAside.WORK, item.requested_by)


def _undeliverable(message: QueueMessage) -> bool:
    """Five workers died of it, or nobody could carry it out: it ends as lost, which its owner is told, and counts as an
    attempt."""
    session_id = UUID((message.payload or {})["session"])
    if not AutonomousSession.objects.filter(pk=session_id).exists():
        return False
    session = lock_session(session_id)
    ending.end(session, ending.LOST)
    return session.task.owner_id is not None


@task_event.connect
def _told(session: AutonomousSession, event: TaskEvent, data: Mapping[str, Any]) -> None:
    owe_webhooks(session, data, event=event, subscribed_only=True)


register(Queue.EXECUTOR, Kind.AUTONOMOUS_SESSION, executor.carry_out)
register_later(Kind.TRIGGER_DUE, clock.trigger, standing=True)
register_later(Kind.SESSION_ADMISSION, clock.admit)
register_later(Kind.SESSION_WATCH, clock.watch, standing=True)
register_later(Kind.SUGGESTION_LOOK, clock.look, standing=True)
when_dead(_undeliverable, Kind.AUTONOMOUS_SESSION)
register_later(Kind.CARD_ALERT, alerting.tell_of_card)
register_later(Kind.HOLD_ALERT, alerting.tell_of_hold)
register_later(Kind.OUTBOX_DELIVERY, relay.carry_out)
when_dead(relay.give_up, Kind.OUTBOX_DELIVERY)
set_aside.connect(notices.tell_of)
