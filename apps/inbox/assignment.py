"""Route conversations that wait for a person to teams, and assign them to available members.

Handler of `Kind.DESK_ROUTING`, on the trusted worker. The rows of a team and of its members are locked while its
conversations are assigned, so that two processes never count the same member's conversations at once, not even for two
teams. Lock order: the team, its members by id, then a conversation. A conversation waits while its team is closed.
A job rather than a step of the turn, which would hold the conversation's lock while members are counted. Loads are
counted each time, because a stored counter would have to be kept right wherever a conversation opens or closes.
"""

from __future__ import annotations

from collections import Counter
from uuid import UUID

from apps.audit.enums import AuditEvent
from apps.audit.services import record
from apps.bus import services as bus
from apps.bus.deliveries import Delivery
from apps.inbox import queries, rules, sla_tracking, teams
from apps.inbox.enums import Assignment
from apps.inbox.models import DeskState, Team, TeamMember
from apps.inbox.rules import Candidate
from apps.inbox.staff import AUTOMATIC
from apps.sessions.enums import Owner
from apps.sessions.locks import lock_session
from apps.sessions.models import ChatSession
from apps.sessions.signals import session_changed
from apps.tenants.hours import is_open
from apps.tenants.locks import lock_members
from apps.tenants.models import User
from kernel.clock import now
from kernel.errors import NotFound
from kernel.tenancy import in_scope

# So many conversations one job assigns, of so many that it looks at.
AT_ONCE, LOOKED_AT = 50, 500


async def deliver(delivery: Delivery) -> None:
    """Route one conversation, then assign what waits for its team; or only the latter."""
    subject, payload = UUID(delivery.message.subject), delivery.message.payload or {}
    team_id: UUID | None = subject
    if payload.get("about") == "session":
        team_id = await in_scope(delivery.tenant_id, route, subject)
    elif payload.get("about") == "later":
        team_id = UUID(payload["team"])
    await delivery.commit(_assign_for, delivery, team_id)


def route(session_id: UUID) -> UUID | None:
    """Give the conversation to the team of its queue, if it still waits; which team it has then."""
    try:
        session = lock_session(session_id)
    except NotFound:
        return None
    state = DeskState.objects.filter(session=session).first() or DeskState(session=session, changed_at=now())
    if session.owner != Owner.BOT or session.wanted_person_at is None:
        return state.team_id
    team = teams.team_of_handover(session, state.team)
    if team is not None and team.pk != state.team_id:
        state.team = teams.kept_team(team.pk)
        state.save()
        data = {"team": str(team.pk), "because": "queue" if session.wanted_queue else "default"}
        record(AuditEvent.CONVERSATION_ROUTED, actor=AUTOMATIC.actor, subject=f"session:{session.pk}", data=data)
        sla_tracking.enqueue_for_team(session.pk)
        session_changed(session.pk)
    return state.team_id


def assign_waiting(team_id: UUID) -> int:
    """Assign conversations that wait for this team and that it is open for, the urgent ones first; returns how many."""
    team: Team | None = Team.objects.select_for_update(of=("self",), no_key=True).filter(pk=team_id).first()
    if team is None or team.assignment == Assignment.OFF:
        return 0
    members = _members_of(team)
    loads = Counter(queries.loads_of(members))
    assigned, moment = 0, now()
    waiting = queries.waiting_for(team_id).select_related("deployment__tenant")[:LOOKED_AT]
    for session in waiting:
        hours = teams.hours_of(team, session)
        if not is_open(hours.hours, zone=hours.zone, moment=moment, holidays=hours.holidays):
            continue
        chosen = rules.choose_assignee(
            Assignment(team.assignment),
            [Candidate(pk, loads[pk], skills) for pk, (_, skills) in members.items()],
            capacity=team.capacity,
            wanted=_wanted(session),
            last=team.last_assignee_id,
        )
        if chosen is None or assigned == AT_ONCE:
            break
        if _assign(session.pk, team, to=members[chosen.member][0], why=chosen.why):
            loads[chosen.member] += 1
            team.last_assignee_id = chosen.member
            assigned += 1
    if assigned:
        team.save(update_fields=["last_assignee"])
    if assigned < len(waiting):
        teams.enqueue_look(team.pk, at=moment + teams.LOOK_EVERY)
    return assigned


def _assign_for(delivery: Delivery, team_id: UUID | None) -> None:
    bus.ack_duplicates(delivery.lease)
    if team_id is not None and assign_waiting(team_id) == AT_ONCE:
        teams.enqueue_assignment(team_id)


def _members_of(team: Team) -> dict[UUID, tuple[User, frozenset[str]]]:
    """The members who are here and may answer, locked, in a lasting order, with their skills."""
    answering = {user.pk for user in queries.answering_members()}
    rows = TeamMember.objects.filter(team=team, user_id__in=answering).select_related("user").order_by("user_id")
    lock_members(row.user_id for row in rows)
    here = teams.available([row.user for row in rows])
    return {row.user_id: (row.user, frozenset(row.skills)) for row in rows if row.user_id in here}


def _wanted(session: ChatSession) -> frozenset[str]:
    """The words by which a member with the skill is found: its labels, its language and its queue."""
    labels = queries.labels_of([session.pk]).get(session.pk, ())
    words = [*(label.name for label in labels), session.language, session.wanted_queue]
    return frozenset(word.casefold() for word in words if word)


def _assign(session_id: UUID, team: Team, *, to: User, why: str) -> bool:
    """Assign the conversation, unless a person was faster."""
    session = lock_session(session_id)
    state = DeskState.objects.filter(session=session).first()
    waits = session.owner == Owner.BOT and session.wanted_person_at is not None
    if not waits or state is None or state.team_id != team.pk or state.assignee_id is not None:
        return False
    state.assignee = to
    state.save(update_fields=["assignee"])
    data = {"to": str(to.pk), "team": str(team.pk), "why": why}
    record(AuditEvent.CONVERSATION_ASSIGNED, actor=AUTOMATIC.actor, subject=f"session:{session.pk}", data=data)
    session_changed(session.pk)
    return True
