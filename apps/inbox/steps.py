"""Steps of macros and inbox rules: what each does to a conversation, in words before it is done, and done.

A step is one call of a service that a person could make by hand, so that it may do no more, and is logged as if they
had. Values are ids, choices or texts that were checked when the steps were saved; what was deleted since is left out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC
from typing import assert_never
from uuid import UUID

from django.utils import timezone

from apps.inbox import handoff, queries, rules, services
from apps.inbox.enums import DeskStatus, Do, Priority, Snooze
from apps.inbox.handoff import writable
from apps.inbox.models import CannedReply, Label, Team
from apps.inbox.queries import Listed
from apps.inbox.staff import Staff, member_of
from apps.sessions import turn_pauses
from apps.sessions.enums import Owner
from apps.sessions.locks import lock_session
from apps.sessions.models import ChatSession
from apps.tenants.models import User
from kernel.canonical import sha256_hex
from kernel.clock import now
from kernel.error_codes import ErrorCode
from kernel.errors import SilasError
from kernel.language import gettext
from kernel.timezones import get_timezone

MAX_STEPS = 10
ME, NOBODY = "me", ""
Step = Mapping[str, str]


@dataclass(frozen=True)
class Effect:
    """One step in words, and whether it would change this conversation."""

    words: str
    changes: bool
    text: str = ""


class Names:
    """What steps refer to, by id; read once for a list of steps."""

    def __init__(self) -> None:
        self.members: dict[str, User] = {str(user.pk): user for user in queries.answering_members()}
        self.teams: dict[str, Team] = {str(team.pk): team for team in Team.objects.all()}
        self.labels: dict[str, Label] = {str(label.pk): label for label in queries.labels()}
        self.replies: dict[str, CannedReply] = {str(reply.pk): reply for reply in queries.canned_replies()}


def sound(given: Sequence[Mapping[str, object]]) -> list[dict[str, str]]:
    """The steps as they are stored. Raises 400 `bad_steps` for none, too many, or one that cannot be done."""
    if not 1 <= len(given) <= MAX_STEPS:
        raise _bad(gettext("Use 1 to {most} steps.").format(most=MAX_STEPS))
    names, steps = Names(), list[dict[str, str]]()
    for step in given:
        do, value = step.get("do"), step.get("value", "")
        if do not in Do.values or not isinstance(value, str) or set(step) - {"do", "value"}:
            raise _bad(gettext("Choose what each step does."))
        if not _fits(Do(str(do)), value, names):
            raise _bad(gettext("Choose a valid value for “{step}”.").format(step=Do(str(do)).label))
        is_text = do in (Do.NOTE, Do.REPLY) and value not in names.replies
        steps.append({"do": str(do), "value": writable(value) if is_text else value})
    return steps


def is_missing(steps: Sequence[Step], names: Names) -> bool:
    """Whether a step names what was deleted since."""
    return not all(_exists(Do(step["do"]), step.get("value", ""), names) for step in steps)


def hash_of(steps: Sequence[Step]) -> str:
    """What tells these steps from any others."""
    return sha256_hex([dict(step) for step in steps])


def preview(steps: Sequence[Step], session_id: UUID, by: Staff) -> list[Effect]:
    """What the steps would do to the conversation as it is now, in order; nothing is done."""
    names, listed = Names(), queries.conversation(session_id)
    return [_effect(Do(step["do"]), step.get("value", ""), listed, names, by) for step in steps]


def describe(steps: Sequence[Step]) -> list[str]:
    """The steps in words, without a conversation."""
    names = Names()
    return [_words(Do(step["do"]), step.get("value", ""), names) for step in steps]


def run(steps: Sequence[Step], session_id: UUID, by: Staff, *, nonce: str = "") -> str:
    """Carry the steps out in order, all or none; returns the reply that is to be put before the member, if any.

    The same `nonce` twice writes its notes once. Locks what waits for the conversation, then the conversation.
    """
    turn_pauses.lock_pauses(session_id)
    zone = get_timezone(lock_session(session_id).tenant.timezone)
    names, draft = Names(), ""
    for place, step in enumerate(steps):
        do, value = Do(step["do"]), step.get("value", "")
        if not _exists(do, value, names):
            continue
        match do:
            case Do.TAKE_OVER:
                handoff.take_over(session_id, by)
            case Do.ASSIGN:
                services.assign(session_id, by, to=_member(value, names, by))
            case Do.TEAM:
                services.set_team(session_id, by, team_id=UUID(value) if value else None)
            case Do.LABEL | Do.UNLABEL:
                services.mark(session_id, by, label_id=UUID(value), on=do == Do.LABEL)
            case Do.PRIORITY:
                services.set_priority(session_id, by, Priority(value))
            case Do.SNOOZE:
                until = rules.snoozed_until(Snooze(value), moment=timezone.localtime(now(), zone))
                services.snooze(session_id, by, until=until.astimezone(UTC) if until else None)
            case Do.RESOLVE:
                services.resolve(session_id, by)
            case Do.NOTE:
                services.note(session_id, by, value, nonce=f"{nonce}:{place}" if nonce else "")
            case Do.REPLY:
                draft = _reply(value, queries.conversation(session_id), names, by)
            case _:
                assert_never(do)
    return draft


def draft_of(steps: Sequence[Step], session_id: UUID, by: Staff) -> str:
    """The reply that the steps put before a member; empty if there is none."""
    values = [step.get("value", "") for step in steps if step["do"] == Do.REPLY]
    return _reply(values[-1], queries.conversation(session_id), Names(), by) if values else ""


def _effect(do: Do, value: str, listed: Listed, names: Names, by: Staff) -> Effect:
    standing, words = listed.standing, _words(do, value, names)
    if not _exists(do, value, names):
        return Effect(gettext("Skipped: what “{step}” names was deleted.").format(step=do.label), changes=False)
    borne = {str(label.pk) for label in listed.labels}
    member = member_of(by)
    match do:
        case Do.TAKE_OVER:
            owns = listed.session.owner == Owner.HUMAN and member is not None
            return Effect(words, not (owns and member and listed.session.owner_user_id == member.pk))
        case Do.ASSIGN:
            to = member if value == ME else names.members.get(value)
            return Effect(words, (standing.assignee and standing.assignee.pk) != (to.pk if to else None))
        case Do.TEAM:
            return Effect(words, (str(standing.team.pk) if standing.team else "") != value)
        case Do.LABEL:
            return Effect(words, value not in borne)
        case Do.UNLABEL:
            return Effect(words, value in borne)
        case Do.PRIORITY:
            return Effect(words, standing.priority != value)
        case Do.RESOLVE:
            return Effect(words, standing.status != DeskStatus.RESOLVED)
        case Do.SNOOZE:
            return Effect(words, changes=True)
        case Do.NOTE:
            return Effect(words, changes=True, text=value)
        case Do.REPLY:
            return Effect(words, changes=False, text=_reply(value, listed, names, by))
    assert_never(do)


def _words(do: Do, value: str, names: Names) -> str:
    match do:
        case Do.ASSIGN if value == ME:
            return gettext("Assign to me")
        case Do.ASSIGN if not value:
            return gettext("Unassign")
        case Do.ASSIGN:
            name = names.members[value].display_name if value in names.members else "…"
            return gettext("Assign to {name}").format(name=name)
        case Do.TEAM if not value:
            return gettext("Remove from its team")
        case Do.TEAM:
            return gettext("Give to {name}").format(name=names.teams.get(value, "…"))
        case Do.LABEL:
            return gettext("Add the label {name}").format(name=names.labels.get(value, "…"))
        case Do.UNLABEL:
            return gettext("Remove the label {name}").format(name=names.labels.get(value, "…"))
        case Do.PRIORITY:
            return gettext("Set the priority to {name}").format(name=Priority(value).label)
        case Do.SNOOZE:
            return gettext("Snooze: {until}").format(until=Snooze(value).label)
        case Do.REPLY:
            return gettext("Put a reply into the composer, for you to send")
        case Do.TAKE_OVER | Do.RESOLVE | Do.NOTE:
            return str(do.label)
    assert_never(do)


def _fits(do: Do, value: str, names: Names) -> bool:
    match do:
        case Do.TAKE_OVER | Do.RESOLVE:
            return not value
        case Do.PRIORITY:
            return value in Priority.values
        case Do.SNOOZE:
            return value in Snooze.values
        case Do.NOTE:
            return bool(value.strip()) and value not in names.replies
        case Do.REPLY:
            return bool(value.strip()) and _exists(do, value, names)
        case Do.ASSIGN | Do.TEAM | Do.LABEL | Do.UNLABEL:
            return _exists(do, value, names)
    assert_never(do)


def _exists(do: Do, value: str, names: Names) -> bool:
    if do == Do.ASSIGN:
        return value in (ME, NOBODY) or value in names.members
    if do == Do.TEAM:
        return not value or value in names.teams
    if do == Do.REPLY and _is_id(value):  # names a canned reply
        return value in names.replies
    return value in names.labels if do in (Do.LABEL, Do.UNLABEL) else True


def _is_id(value: str) -> bool:
    try:
        return str(UUID(value)) == value
    except ValueError:
        return False


def _member(value: str, names: Names, by: Staff) -> User | None:
    if value != ME:
        return names.members.get(value)
    member = member_of(by)
    if member is None:
        raise SilasError(ErrorCode.ASSIGNEE_UNFIT, gettext("This macro assigns to the member who runs it."))
    return member


def _reply(value: str, listed: Listed, names: Names, by: Staff) -> str:
    text = names.replies[value].text if value in names.replies else value
    return reply_text(text, listed.session, member_of(by))


def reply_text(text: str, session: ChatSession, member: User | None) -> str:
    """A canned reply as the visitor of this conversation would read it from this member."""
    return rules.written_to(
        text,
        visitor=session.customer_name,
        member=member.display_name if member else session.deployment.title,
        chatbot=session.deployment.title,
    )


def _bad(message: str) -> SilasError:
    return SilasError(ErrorCode.BAD_STEPS, message)
