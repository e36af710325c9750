"""Signal receivers of this room, and the registration of its handlers of cards and bus messages.

Receivers run in the announcing transaction (`kernel.events`). Imported once, when Django is ready.
"""

from __future__ import annotations

from collections.abc import Collection
from uuid import UUID

from apps.approvals.enums import CardKind
from apps.approvals.registry import on_card
from apps.autonomy import alert_delivery, executor, handlers
from apps.autonomy.enums import Topic
from apps.autonomy.models import AutonomousSession, MemoryProposal
from apps.autonomy.services import (
    bus_messages,
    consent,
    limit_increases,
    notices,
    open_questions,
    precedents,
    proposal_storage,
    proposals,
    provenance,
    session_end,
)
from apps.autonomy.services.occurrences import record_occurrence
from apps.autonomy.signals import session_ended
from apps.bus.enums import Kind, Queue, SetAside
from apps.bus.registry import on_dead_letter, register, register_job
from apps.bus.signals import set_aside
from apps.inbox.models import SlaClock
from apps.inbox.signals import sla_missed
from apps.knowledge.signals import document_stored
from apps.sessions.models import ChatSession
from apps.sessions.signals import question_unanswered
from apps.skills.signals import skill_purged
from apps.tenants.enums import Role
from apps.tenants.signals import role_changed
from apps.work import rules as work_rules
from apps.work.enums import CycleOutcome
from apps.work.models import GoalCycle, WorkItem
from apps.work.signals import Progress, goal_checked, work_changed, work_escalated

# The actor under which documents are stored for a session: a watch must not fire on what sessions brought about.
OURS = "autonomy:"


@role_changed.connect
def _on_role_changed(user_id: UUID, role: Role, actor: str) -> None:
    consent.withdraw_opt_in_without_role(user_id, role, actor=actor)


@document_stored.connect
def _on_document_stored(document_id: UUID, collection_id: UUID, actor: str) -> None:
    if actor.startswith(OURS):
        return
    record_occurrence(f"watch:{collection_id}", str(document_id))
    record_occurrence(f"event:{Topic.DOCUMENT_STORED}", str(document_id))


@question_unanswered.connect
def _on_question_unanswered(session: ChatSession, text: str) -> None:
    if not session.is_test and open_questions.record_question(session, text):
        record_occurrence(f"event:{Topic.QUESTION_UNANSWERED}", str(session.pk))


@goal_checked.connect
def _on_goal_checked(cycle: GoalCycle) -> None:
    record_occurrence(f"goal-all:{cycle.goal_id}", str(cycle.goal_id))
    if cycle.outcome != CycleOutcome.HEALTHY:
        record_occurrence(f"goal:{cycle.goal_id}", str(cycle.goal_id))
    record_occurrence(f"event:{Topic.GOAL_LOOKED_AT}", str(cycle.goal_id))


@work_changed.connect
def _on_work_changed(item: WorkItem, status: str, progress: Progress) -> None:
    if item.status in work_rules.FINAL:
        record_occurrence(f"event:{Topic.WORK_ENDED}", str(item.pk))
    approved = session_end.approval_in_status(item.status)
    if approved is not None:
        session_end.end_waiting_sessions(item.pk, approved=approved)


@work_escalated.connect
def _on_work_escalated(item: WorkItem, text: str, needs_person: bool) -> None:
    if needs_person:
        record_occurrence(f"event:{Topic.PERSON_WANTED}", str(item.pk))
    if item.session_id is None and not item.is_part:
        set_aside(SetAside.WORK, item.requested_by)


@skill_purged.connect
def _on_skill_purged(name: str, actor: str) -> None:
    provenance.purge(provenance.Origin("skill", name), actor=actor)


@session_ended.connect
def _on_session_ended(session: AutonomousSession) -> None:
    """Workers cannot open cards: have a trusted worker ask a person about what the session proposed."""
    if MemoryProposal.objects.filter(session=session, card_id=None).exists():
        bus_messages.enqueue_review(bus_messages.ASK, session.pk)


@sla_missed.connect
def _on_sla_missed(clock: SlaClock, responsible: Collection[UUID]) -> None:
    """Notify those who are responsible, or the owners if there are none."""
    for actor in [f"user:{user_id}" for user_id in responsible] or ["system"]:
        notices.notify_of_set_aside(SetAside.SLA_MISSED, actor)


set_aside.connect(notices.notify_of_set_aside)

on_card(CardKind.DECISION, proposals.PROPOSAL, decided=proposals.apply_decision)
on_card(CardKind.DECISION, precedents.CONTEXT, decided=precedents.apply_decision)
on_card(CardKind.BUDGET, limit_increases.SUBJECT, decided=limit_increases.apply_decision)

register(Queue.EXECUTOR, Kind.AUTONOMOUS_SESSION, executor.run_session)
on_dead_letter(handlers.handle_dead_session, Kind.AUTONOMOUS_SESSION)
register_job(Kind.TRIGGER_DUE, handlers.handle_trigger, recurring=True)
register_job(Kind.SESSION_ADMISSION, handlers.handle_admission)
register_job(Kind.SESSION_WATCH, handlers.handle_session_check, recurring=True)
register(Queue.TRUSTED, Kind.REVIEW_OWED, handlers.handle_review)
handlers.register_review(bus_messages.ASK, handlers.open_proposal_cards)
handlers.register_review(bus_messages.RECALL, proposal_storage.store_kept)
handlers.register_review(bus_messages.RAISE, handlers.open_increase_card)
register_job(Kind.CARD_ALERT, alert_delivery.deliver_card_alerts)
register_job(Kind.HOLD_ALERT, alert_delivery.deliver_hold_alerts)
register_job(Kind.OUTBOX_DELIVERY, handlers.handle_outbox)
on_dead_letter(handlers.handle_dead_outbox, Kind.OUTBOX_DELIVERY)
