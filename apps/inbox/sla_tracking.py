"""Keep the SLA clocks of conversations up to date, and announce once when a target is missed.

What happens is written down in the transaction in which it happens (`note`), and a job (`Kind.SLA_CLOCKS`, on the
trusted worker) computes the clocks from it (`sla_clocks`). Another job is due when the next clock is. Clocks are stored
rather than computed for each page of the inbox: only so can it be filtered and sorted by them. Without a policy
nothing is written down, and test conversations have no clocks.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from datetime import datetime, timedelta
from uuid import UUID, uuid5

from apps.audit.enums import AuditEvent
from apps.audit.services import record
from apps.bus.deliveries import Delivery
from apps.bus.enums import Kind
from apps.bus.services import ack_duplicates, enqueue
from apps.inbox.enums import SlaEvent, SlaOutcome, SlaTarget
from apps.inbox.models import DeskState, SlaClock, SlaMoment, SlaPolicy, TeamMember
from apps.inbox.reading import PUT_IN
from apps.inbox.signals import sla_missed
from apps.inbox.sla_clocks import Clock, Moment, clocks, outcome_of
from apps.inbox.staff import AUTOMATIC
from apps.sessions import person_wanted
from apps.sessions.enums import EntryKind, Owner, Sender
from apps.sessions.locks import lock_session
from apps.sessions.models import ChatSession, ChronicleEntry
from apps.sessions.signals import session_changed
from apps.tenants.hours import Schedule
from kernel.clock import now
from kernel.errors import NotFound
from kernel.tenancy import current_tenant_id, in_scope

_AROUND_THE_CLOCK = Schedule({}, "UTC")
# How much the clock of the database, by which a job is due, may differ from ours.
_CLOCK_SKEW = timedelta(seconds=5)
# Conversations of which one transaction computes the clocks.
_AT_ONCE = 50
_ASKS = (*PUT_IN, EntryKind.SECURE_STORED)


def note(session: ChatSession, *moments: Moment) -> None:
    """Write down what happened in the conversation, and have its clocks computed after the commit."""
    if not moments or session.is_test or not SlaPolicy.objects.exists():
        return
    SlaMoment.objects.bulk_create(
        SlaMoment(session_id=session.pk, event=one.event, at=one.at, until=one.until) for one in moments
    )
    enqueue_refresh(session.pk)


def note_entries(session: ChatSession, entries: Iterable[ChronicleEntry]) -> None:
    """Write down the handovers, the visitor's messages to the team and its replies among these entries."""
    is_with_team = session.owner == Owner.HUMAN or session.wanted_person_at is not None
    events = ((entry.created_at, _event_of(entry, is_with_team=is_with_team)) for entry in entries)
    note(session, *(Moment(at, event) for at, event in events if event))


def _event_of(entry: ChronicleEntry, *, is_with_team: bool) -> SlaEvent | None:
    if entry.kind == EntryKind.OWNER:
        return SlaEvent.TAKEN_OVER if entry.payload.get("owner") == Owner.HUMAN else SlaEvent.HANDED_BACK
    if entry.sender == Sender.HUMAN:
        return SlaEvent.REPLIED
    if entry.sender == Sender.VISITOR and is_with_team and entry.kind in _ASKS:
        return SlaEvent.ASKED
    return None


def enqueue_refresh(session_id: UUID) -> None:
    """Have the clocks of the conversation computed after the commit."""
    enqueue(Kind.SLA_CLOCKS, scope_id=session_id, payload={"session": str(session_id)})


def enqueue_refresh_of_all(after: UUID | None = None) -> None:
    """Have all running clocks of the company computed after the commit, conversation by conversation in the order of
    their ids. Those up to `after` are done."""
    scope = uuid5(current_tenant_id(), f"sla:all:{after or ''}")
    enqueue(Kind.SLA_CLOCKS, scope_id=scope, payload={"all_after": str(after or "")})


def enqueue_for_team(session_id: UUID) -> None:
    """Have the clocks of a conversation that went to another team computed, if it has any."""
    if SlaClock.objects.filter(session=session_id, ended_at=None).exists():
        enqueue_refresh(session_id)


async def deliver(delivery: Delivery) -> None:
    """Compute the clocks of one conversation, or of the next of all. A job that comes before its time goes back to its
    queue until then."""
    payload, moment = delivery.message.payload or {}, now()
    if (after := payload.get("all_after")) is not None:
        await delivery.commit(_refresh_some, UUID(after) if after else None, moment)
        return
    due = datetime.fromisoformat(payload["due"]) if "due" in payload else None
    if due is not None and due > moment + _CLOCK_SKEW:
        await in_scope(delivery.tenant_id, delivery.defer, (due - moment).total_seconds(), "not_yet")
        return
    await delivery.commit(_refresh_for, delivery, UUID(payload["session"]), max(moment, due) if due else moment)


def _refresh_for(delivery: Delivery, session_id: UUID, moment: datetime) -> None:
    if "due" not in (delivery.message.payload or {}):
        ack_duplicates(delivery.lease)
    refresh(session_id, moment=moment)


def _refresh_some(after: UUID | None, moment: datetime) -> None:
    running = SlaClock.objects.filter(ended_at=None)
    if after is not None:
        running = running.filter(session_id__gt=after)
    sessions = list(running.order_by("session_id").values_list("session_id", flat=True).distinct()[:_AT_ONCE])
    for session_id in sessions:
        refresh(session_id, moment=moment)
    if len(sessions) == _AT_ONCE:
        enqueue_refresh_of_all(sessions[-1])


def refresh(session_id: UUID, *, moment: datetime) -> None:
    """Compute the clocks of the conversation and store what has changed."""
    try:
        session = lock_session(session_id)
    except NotFound:
        return
    policy = policy_for(session)
    computed = _computed(session, policy)
    stored: dict[tuple[str, datetime], SlaClock] = {
        (row.target, row.started_at): row for row in SlaClock.objects.filter(session=session)
    }
    changed = 0
    for clock in computed:
        row = stored.pop((clock.target, clock.started_at), None)
        if row is None and (policy is None or clock.started_at < policy.changed_at):
            continue
        row = row or SlaClock(session=session, target=clock.target, started_at=clock.started_at)
        if row.ended_at is None and _store(row, clock, policy, moment):
            changed += 1
    for row in stored.values():
        if row.ended_at is None:
            changed += _store(row, _stopped(row, moment), policy, moment)
    if changed:
        session_changed(session.pk)
    _enqueue_next(session_id)


def forget(session_ids: Collection[UUID]) -> None:
    """Delete what the clocks of these conversations are computed from. Clocks that have ended stay, as figures; the
    others end."""
    SlaMoment.objects.filter(session_id__in=session_ids).delete()
    running = SlaClock.objects.filter(session_id__in=session_ids, ended_at=None)
    for session_id in running.order_by().values_list("session_id", flat=True).distinct():
        enqueue_refresh(session_id)


def policy_for(session: ChatSession) -> SlaPolicy | None:
    """The first policy that holds for the conversation."""
    team = DeskState.objects.filter(session=session).values_list("team_id", flat=True).first()
    for policy in SlaPolicy.objects.all():
        is_of_team = not policy.teams or str(team) in policy.teams
        if is_of_team and (not policy.deployments or str(session.deployment_id) in policy.deployments):
            return policy
    return None


def _computed(session: ChatSession, policy: SlaPolicy | None) -> list[Clock]:
    if policy is None:
        return []
    rows = SlaMoment.objects.filter(session=session).values_list("at", "event", "until")
    moments = [Moment(at, SlaEvent(event), until) for at, event, until in rows]
    minutes = {target: value for target in SlaTarget if (value := getattr(policy, target)) is not None}
    schedule = person_wanted.schedule_of(session) if policy.in_opening_hours else _AROUND_THE_CLOCK
    return clocks(moments, minutes, schedule)


def _stopped(row: SlaClock, moment: datetime) -> Clock:
    """The end of a clock for which no policy has a target any more."""
    return Clock(SlaTarget(row.target), row.started_at, moment, is_cancelled=True, due_at=row.due_at)


def _store(row: SlaClock, clock: Clock, policy: SlaPolicy | None, moment: datetime) -> bool:
    """Bring the stored clock up to date and return whether that changed it. When it becomes missed, record and announce
    that once."""
    was_missed, before = row.is_missed, (row.due_at, row.ended_at, row.outcome, row.policy_id)
    row.ended_at = clock.ended_at
    if not was_missed:
        row.due_at, row.policy = clock.due_at, policy
        row.outcome = outcome_of(clock, moment)
    if not row._state.adding and before == (row.due_at, row.ended_at, row.outcome, row.policy_id):
        return False
    row.save()
    if row.is_missed and not was_missed:
        data = {"target": row.target, "clock": str(row.pk)}
        record(AuditEvent.SLA_MISSED, actor=AUTOMATIC.actor, subject=f"session:{row.session_id}", data=data)
        sla_missed(row, responsible_for(row.session))
    return True


def responsible_for(session: ChatSession) -> set[UUID]:
    """The assignee, else the member who answers, else the members of the team; none if there is no team."""
    state = DeskState.objects.filter(session=session).first()
    one = (state.assignee_id if state else None) or session.owner_user_id
    if one is not None:
        return {one}
    members = TeamMember.objects.filter(team=state.team_id) if state and state.team_id else TeamMember.objects.none()
    return set(members.values_list("user_id", flat=True))


def _enqueue_next(session_id: UUID) -> None:
    """Look again when the next clock is due."""
    running = SlaClock.objects.filter(session=session_id, outcome=SlaOutcome.RUNNING, due_at__isnull=False)
    due = running.order_by("due_at").values_list("due_at", flat=True).first()
    if due is None:
        return
    enqueue(
        Kind.SLA_CLOCKS,
        # A scope of its own, because jobs of one scope run in order and an earlier one would wait behind this one.
        scope_id=uuid5(session_id, f"sla:{due.timestamp():.6f}"),
        payload={"session": str(session_id), "due": due.isoformat()},
        message_id=f"sla:{session_id}:{due.timestamp():.6f}",
        due_at=due,
    )
