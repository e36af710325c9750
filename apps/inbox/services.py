"""Change a conversation's state for staff: snooze, resolve, reopen, assign, label, note.

Everyone who may answer may do all of it in any conversation of the tenant. Each call locks the conversation, so that a
visitor who writes at the same time comes before or after. Called by the
console and the REST API, never by a model.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime
from typing import TypedDict
from uuid import UUID

from apps.approvals.enums import Withdrawal
from apps.approvals.queries import members
from apps.audit.enums import AuditEvent
from apps.audit.services import record
from apps.inbox import inbox_rule_triggers, queries, rules, sla_tracking, teams
from apps.inbox.enums import DeskStatus, Priority, RuleTrigger, SlaEvent
from apps.inbox.handoff import hand_back, take_over, writable
from apps.inbox.models import DeskState, Label, Mention, Note, SessionLabel
from apps.inbox.signals import members_mentioned
from apps.inbox.sla_clocks import Moment
from apps.inbox.staff import ANSWERING_ROLES, Staff, member_of, require_staff
from apps.messengers.ratings import ask_rating
from apps.sessions import turn_pauses
from apps.sessions.enums import Owner
from apps.sessions.locks import lock_session
from apps.sessions.models import ChatSession
from apps.sessions.signals import session_changed
from apps.tenants.models import User
from apps.tenants.queries import role_of
from kernel.clock import now
from kernel.error_codes import ErrorCode
from kernel.errors import NotFound, SilasError
from kernel.language import gettext

_SLA_EVENTS = {
    DeskStatus.OPEN: SlaEvent.REOPENED,
    DeskStatus.SNOOZED: SlaEvent.SNOOZED,
    DeskStatus.RESOLVED: SlaEvent.RESOLVED,
}


class Edit(TypedDict, total=False):
    """Changes of a conversation; what is not named stays. `labels` are all that it bears afterwards; `snoozed_until`
    belongs to the state `snoozed`, None for not before the visitor writes."""

    owner: Owner
    state: DeskStatus
    snoozed_until: datetime | None
    assignee: UUID | None
    team: UUID | None
    priority: Priority
    labels: Collection[UUID]


def edit(session_id: UUID, by: Staff, changes: Edit, *, versions: Collection[str] = ()) -> None:
    """Make all of the changes or none. Raises 412 `conversation_changed` when the conversation is at none of these
    `versions` (`queries.version_of`), if there are any, and as the functions below and those of `handoff`.

    Lock order: cards, then the conversation.
    """
    require_staff(by)
    turn_pauses.lock_pauses(session_id)
    lock_session(session_id)
    if versions and queries.version_of(queries.conversation(session_id)) not in versions:
        raise SilasError(ErrorCode.CONVERSATION_CHANGED)
    if "owner" in changes:
        (take_over if changes["owner"] == Owner.HUMAN else hand_back)(session_id, by)
    if "team" in changes:
        set_team(session_id, by, team_id=changes["team"])
    if "priority" in changes:
        set_priority(session_id, by, Priority(changes["priority"]))
    if "assignee" in changes:
        member_id = changes["assignee"]
        assign(session_id, by, to=queries.answering_member(str(member_id)) if member_id else None)
    if "labels" in changes:
        wanted = set(changes["labels"])
        borne = {label.pk for label in queries.labels_of([session_id]).get(session_id, ())}
        for label_id in sorted(wanted ^ borne):
            mark(session_id, by, label_id=label_id, on=label_id in wanted)
    match changes.get("state"):
        case DeskStatus.OPEN:
            reopen(session_id, by)
        case DeskStatus.SNOOZED:
            snooze(session_id, by, until=changes.get("snoozed_until"))
        case DeskStatus.RESOLVED:
            resolve(session_id, by)


def resolve(session_id: UUID, by: Staff) -> bool:
    """Resolve the conversation until the visitor writes again. It no longer waits for a person, and what
    gates hold back for approval is withdrawn; who answers stays the same. False if nothing changed, as with all of
    these."""
    require_staff(by)
    turn_pauses.withdraw_pauses(session_id, reason=Withdrawal.STAFF, actor=by.actor)
    session, state = _begin(session_id, by)
    if state.status == DeskStatus.RESOLVED and session.wanted_person_at is None:
        return False
    if session.owner == Owner.BOT and session.wanted_person_at is not None:
        session.wanted_person_at, session.wanted_queue, session.wanted_because = None, "", ""
        session.save(update_fields=["wanted_person_at", "wanted_queue", "wanted_because"])
    ask_rating(session)
    teams.enqueue_assignment_of(state.assignee_id, session.owner_user_id)
    inbox_rule_triggers.enqueue_for_state(session.pk, RuleTrigger.RESOLVED, by)
    return _move(state, DeskStatus.RESOLVED, None, AuditEvent.CONVERSATION_RESOLVED, by)


def reopen(session_id: UUID, by: Staff) -> bool:
    """Open again what was snoozed or resolved."""
    session, state = _begin(session_id, by)
    if state.status == DeskStatus.OPEN:
        return False
    inbox_rule_triggers.enqueue_for_state(session.pk, RuleTrigger.REOPENED, by)
    return _move(state, DeskStatus.OPEN, None, AuditEvent.CONVERSATION_REOPENED, by)


def snooze(session_id: UUID, by: Staff, *, until: datetime | None) -> bool:
    """Out of sight until then, or until the visitor answers, whichever is first; None for the latter alone. Raises 400
    `bad_time` for the past and for years ahead."""
    session, state = _begin(session_id, by)
    if until is not None and not rules.may_rest_until(until, moment=now()):
        raise SilasError(ErrorCode.BAD_TIME, gettext("Choose a time in the future, within a year."))
    wanted = session.wanted_person_at is not None and session.wanted_person_at > state.changed_at
    if (state.status, state.until) == (DeskStatus.SNOOZED, until) and not wanted:
        return False
    teams.enqueue_assignment_of(state.assignee_id, session.owner_user_id)
    return _move(state, DeskStatus.SNOOZED, until, AuditEvent.CONVERSATION_SNOOZED, by)


def assign(session_id: UUID, by: Staff, *, to: User | None) -> bool:
    """Assign a conversation; None unassigns it. An assignment locks nothing: every member who may answer can still take
    over. Raises 409 `assignee_unfit` for a member who may not answer."""
    session, state = _begin(session_id, by)
    if to is not None and role_of(to) not in ANSWERING_ROLES:
        raise SilasError(ErrorCode.ASSIGNEE_UNFIT, gettext("This teammate can't answer this conversation."))
    if state.assignee_id == (to.pk if to else None):
        return False
    teams.enqueue_assignment_of(state.assignee_id)
    state.assignee = to
    state.save()
    _told(AuditEvent.CONVERSATION_ASSIGNED, session.pk, by, to=str(to.pk) if to else "")
    return True


def set_team(session_id: UUID, by: Staff, *, team_id: UUID | None) -> bool:
    """Give a conversation to a team; None takes it from any. A team that assigns automatically does so after the
    commit, if the visitor waits for a person."""
    session, state = _begin(session_id, by)
    if state.team_id == team_id:
        return False
    team = teams.kept_team(team_id) if team_id else None
    state.team = team
    state.save()
    _told(AuditEvent.CONVERSATION_ROUTED, session.pk, by, team=str(team.pk) if team else "", because="person")
    if team is not None:
        teams.enqueue_assignment(team.pk)
    sla_tracking.enqueue_for_team(session.pk)
    return True


def set_priority(session_id: UUID, by: Staff, priority: Priority) -> bool:
    session, state = _begin(session_id, by)
    if state.priority == priority:
        return False
    state.priority = priority
    state.save()
    _told(AuditEvent.CONVERSATION_PRIORITISED, session.pk, by, priority=priority.value)
    return True


def mark(session_id: UUID, by: Staff, *, label_id: UUID, on: bool) -> bool:
    """Put a label on a conversation, or take it off."""
    require_staff(by)
    session = lock_session(session_id)
    # Locked, so that it is not deleted meanwhile.
    label = Label.objects.select_for_update(of=("self",), no_key=True).filter(pk=label_id).first()
    if label is None:
        raise NotFound()
    if on:
        _, changed = SessionLabel.objects.get_or_create(session=session, label=label)
    else:
        changed = bool(SessionLabel.objects.filter(session=session, label=label).delete()[0])
    if changed:
        _told(AuditEvent.CONVERSATION_LABELLED, session.pk, by, label=str(label.pk), on=on)
    return bool(changed)


def note(session_id: UUID, by: Staff, text: str, *, nonce: str = "") -> Note:
    """Tell colleagues something; no visitor and no model ever reads it. The same `nonce` twice writes once."""
    require_staff(by)
    text = writable(text)
    session = lock_session(session_id)
    if nonce and (before := Note.objects.filter(session=session, nonce=nonce[:64]).first()):
        return before
    written: Note = Note.objects.create(
        session=session, author=member_of(by), text=text, after=session.seq, nonce=nonce[:64], created_at=now()
    )
    _mention(written)
    _told(AuditEvent.NOTE_WRITTEN, session.pk, by, note=str(written.pk))
    return written


def _mention(note: Note) -> None:
    """Name the members whom the note mentions, except its author."""
    if "@" not in note.text:
        return
    names = {user.pk: user.display_name for user in members() if user.is_active and user.pk != note.author_id}
    found = rules.mentioned(note.text, names)
    Mention.objects.bulk_create(Mention(note=note, session=note.session, user_id=user_id) for user_id in found)
    if found:
        members_mentioned(note, found)


def _begin(session_id: UUID, by: Staff) -> tuple[ChatSession, DeskState]:
    """The locked conversation and what staff have said about it, which is nothing at first."""
    require_staff(by)
    session = lock_session(session_id)
    state = DeskState.objects.filter(session=session).first() or DeskState(session=session, changed_at=now())
    return session, state


def _move(state: DeskState, to: DeskStatus, until: datetime | None, event: AuditEvent, by: Staff) -> bool:
    state.status, state.until, state.changed_at = to, until, now()
    state.save()
    sla_tracking.note(state.session, Moment(state.changed_at, _SLA_EVENTS[to], until))
    _told(event, state.session_id, by, **({"until": until.isoformat()} if until else {}))
    return True


def _told(event: AuditEvent, session_id: UUID, by: Staff, **data: object) -> None:
    session_changed(session_id)
    kept: Mapping[str, object] = data
    record(event, actor=by.actor, subject=f"session:{session_id}", data=dict(kept))
