"""Deletes notes' words and SLA moments with the words of their conversation, routes handovers to teams, enqueues runs
of inbox rules, ends the waits of cards for a customer's answer, and records SLA moments."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from uuid import UUID

from apps.approvals.cards import questions
from apps.bus.enums import Kind
from apps.bus.registry import register_job
from apps.inbox import (
    assignment,
    inbox_rule_runs,
    inbox_rule_triggers,
    reading,
    sla_tracking,
    teams,
)
from apps.inbox.enums import SlaEvent
from apps.inbox.models import Mention, Note
from apps.inbox.reading import PUT_IN
from apps.inbox.sla_clocks import Moment
from apps.sessions.enums import Sender
from apps.sessions.models import ChatSession, ChronicleEntry
from apps.sessions.registry import register_availability, register_read_state, register_schedule
from apps.sessions.retention import FORGOTTEN
from apps.sessions.signals import conversations_forgotten, entries_appended, person_wanted
from kernel.tenancy import read_together

register_job(Kind.DESK_ROUTING, assignment.deliver)
register_job(Kind.INBOX_RULES, inbox_rule_runs.deliver)
register_job(Kind.SLA_CLOCKS, sla_tracking.deliver)
register_schedule(teams.schedule_of)
register_availability(teams.is_available_for)
register_read_state(reading.read_for_visitor)


@conversations_forgotten.connect
def _forget(session_ids: Collection[UUID]) -> None:
    Note.objects.filter(session_id__in=session_ids).update(text=FORGOTTEN)
    Mention.objects.filter(session_id__in=session_ids).delete()
    sla_tracking.forget(session_ids)


@person_wanted.connect
def _route(session: ChatSession) -> None:
    if not session.is_test:
        teams.enqueue_route(session.pk)
        inbox_rule_triggers.enqueue_for_handover(session)
        if session.wanted_person_at is not None:
            sla_tracking.note(session, Moment(session.wanted_person_at, SlaEvent.WANTED))


@entries_appended.connect
def _entries_appended(session: ChatSession, entries: Sequence[ChronicleEntry]) -> None:
    written = next((entry for entry in entries if entry.sender == Sender.VISITOR and entry.kind in PUT_IN), None)
    if written is not None:
        active = inbox_rule_triggers.active_triggers()
        waiting = questions.waiting_for(session.pk, answer_seq=written.seq)
        read_together(active, waiting)
        inbox_rule_triggers.enqueue_for_entries(session, entries, active.value)
        questions.end_waits(waiting.value, answer_seq=written.seq)
    sla_tracking.note_entries(session, entries)
