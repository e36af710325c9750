"""The console's socket: tells the logged-in member's pages what to refresh, in the tenant that the session has open.

Close codes: 4001 not logged in, 4003 foreign origin or no membership, 4008 too many bad frames, 1013 come back later.
Messages say only what changed; the pages load it again. `ready` carries the number of the last audit entry, so that a
page older than its socket knows. The web process's sweep compares that number later, for messages that were lost in
Redis.
"""

from __future__ import annotations

import json
from contextlib import suppress
from functools import partial
from typing import Any, NamedTuple
from urllib.parse import urlsplit
from uuid import UUID

from channels.generic.websocket import AsyncJsonWebsocketConsumer
from django.db import Error as DatabaseError
from redis.exceptions import RedisError

from apps.approvals.cards.alerts import alert_choice
from apps.approvals.models import AlertChoice
from apps.audit.queries import head_of
from apps.audit.rules import Head
from apps.console import viewers
from apps.console.members import Member, group_of, group_of_member, member_of
from apps.console.notices import Notice, concerns
from apps.inbox import reading, teams
from apps.inbox.staff import require_staff
from apps.sessions.enums import Owner
from apps.sessions.queries import session_by_id
from apps.sessions.rules import group_of as group_of_session
from apps.sessions.rules import watchers_of
from apps.sessions.schemas import POLICY_VIOLATION
from apps.tenants import access, logins, visits
from apps.tenants.models import User
from kernel import live, presence
from kernel.clock import now
from kernel.errors import NotFound, SilasError
from kernel.ratelimit.token_buckets import TokenBucket
from kernel.tenancy import in_scope, in_thread

NOT_AUTHENTICATED, FORBIDDEN, TRY_LATER = 4001, 4003, 1013
# Invalid frames: this many are dropped, and one more every ten seconds; then the socket is closed.
BAD_FRAMES, BAD_FRAMES_A_SECOND = 10, 0.1
MAX_SEQ = 2**62
# Signs of typing of one console, of which browsers send one every three seconds.
TYPING_BURST, TYPING_A_SECOND = 2, 1 / 3


# What a console can have open, and what other consoles refresh when that changes.
VIEWABLE = {"card": "card", "session": "company"}


class Viewed(NamedTuple):
    what: str
    pk: UUID


class Look(NamedTuple):
    """What a console has open, and up to which entry and with which last note a conversation is shown."""

    at: Viewed | None = None
    seq: int = 0
    note: str = ""


class Typing(NamedTuple):
    """The member is writing in a conversation: a reply to the visitor, or a private note."""

    session_id: UUID
    is_reply: bool


class ConsoleConsumer(AsyncJsonWebsocketConsumer):  # type: ignore[misc]  # Channels has no types
    tenant_id: UUID | None = None
    login_id = ""
    viewing: Viewed | None = None
    seq = 0
    _choice: AlertChoice | None = None
    _read: Look | None = None
    _has_closed = False
    _watched = ""

    def __init__(self, *args: object, **kwargs: object) -> None:
        super().__init__(*args, **kwargs)
        self._look_rate = TokenBucket(10, 2.0)
        self._typing_rate = TokenBucket(TYPING_BURST, TYPING_A_SECOND)
        self._bad_rate = TokenBucket(BAD_FRAMES, BAD_FRAMES_A_SECOND)

    async def __call__(self, scope: object, receive: object, send: object) -> None:
        """Unregister the socket however it ends, also after an error of ours."""
        presence.presence_opened()
        try:
            await super().__call__(scope, receive, send)
        finally:
            presence.presence_closed()
            _open.discard(self)

    async def connect(self) -> None:
        await self.accept()
        if not _is_own_origin(self.scope["headers"]):
            await self.close(FORBIDDEN)
            return
        try:
            await self._begin()
        except (DatabaseError, RedisError):
            await self.close(TRY_LATER)

    async def _begin(self) -> None:
        refusal, member = await in_thread(_member_from, self.scope)
        if member is None:
            await self.close(refusal)
            return
        self.tenant_id, self.login_id = member.tenant.pk, self.scope["session"].get(access.LOGIN, "")
        for group in self._groups():
            await self.channel_layer.group_add(group, self.channel_name)
        head, self._choice = await in_scope(self.tenant_id, _record_visit, self.scope["user"], self.tenant_id)
        self.seq = head.seq
        _open.add(self)
        await self.send_json({"type": "ready", "seq": self.seq})

    def _groups(self) -> list[str]:
        """The groups with messages for the tenant, the membership and the end of this login."""
        assert self.tenant_id is not None
        mine = [group_of(self.tenant_id), group_of_member(self.tenant_id, self.scope["user"].pk)]
        return [*mine, logins.group_of_login(UUID(self.login_id))] if self.login_id else mine

    async def disconnect(self, code: int) -> None:
        if self.tenant_id:
            await self._set_viewing(None)
            with suppress(RedisError):
                for group in self._groups():
                    await self.channel_layer.group_discard(group, self.channel_name)

    async def dispatch(self, message: dict[str, object]) -> None:
        for event in live.unpack_events(message, attending=False):
            await super().dispatch(event)

    async def refresh_if_older(self, seq: int) -> None:
        """Refresh the whole page if the tenant's audit log is past what this console knows."""
        if seq > self.seq:
            self.seq = seq
            await self.send_json({"type": "changed", "what": "everything"})

    async def receive(self, text_data: str | None = None, bytes_data: bytes | None = None, **_: object) -> None:
        """Take `look` frames: which card or conversation is open, if any; and `typing` frames.

        Frames that come too fast are dropped; a socket that keeps sending anything else is closed.
        """
        if self._has_closed:
            return
        frame = _parse_frame(text_data or "")
        if frame is None:
            if self._bad_rate.wait():
                await self.close(POLICY_VIOLATION)
        elif isinstance(frame, Typing):
            if self.tenant_id and not self._typing_rate.wait():
                await self._report_typing(frame)
        elif self.tenant_id and not self._look_rate.wait():
            await self._set_viewing(frame.at)
            await self._mark_read(frame)

    async def close(self, code: int | None = None, reason: str | None = None) -> None:
        self._has_closed = True
        await super().close(code, reason)

    async def _set_viewing(self, at: Viewed | None) -> None:
        """Update the viewers; other consoles are told only when someone comes or goes, not for repeated reports."""
        user, tenant_id, before = self.scope["user"], self.tenant_id, self.viewing
        assert tenant_id is not None
        self.viewing = at
        with suppress(RedisError):
            await self._watch(watchers_of(tenant_id, at.pk) if at and at.what == "company" else "")
            if at:
                await in_thread(viewers.mark_viewing, tenant_id, at.pk, user.pk)
            if before and before != at:
                await in_thread(viewers.mark_left, tenant_id, before.pk, user.pk)
        for changed in {viewed for viewed in (before, at) if viewed is not None} if before != at else ():
            event = {"type": "console.changed", "what": f"{changed.what}:{changed.pk}", "by": self.channel_name}
            await live.send(group_of(tenant_id), event)

    async def _watch(self, group: str) -> None:
        """Listen to what happens in the conversation that is open and is not recorded."""
        before = self._watched
        if before == group:
            return
        self._watched = ""
        if before:
            await self.channel_layer.group_discard(before, self.channel_name)
        if group:
            await self.channel_layer.group_add(group, self.channel_name)
        self._watched = group

    async def _report_typing(self, typing: Typing) -> None:
        """Tell colleagues who have the conversation open, and its visitor if this member answers it. Nothing is
        stored."""
        user, tenant_id, session_id = self.scope["user"], self.tenant_id, typing.session_id
        assert tenant_id is not None
        try:
            answers = await in_scope(tenant_id, _answers, session_id, user)
        except (DatabaseError, SilasError):
            return
        told = {"session": str(session_id), "sender": "human", "user": str(user.pk), "name": user.display_name}
        await live.send(watchers_of(tenant_id, session_id), {"type": "console.typing", **told})
        if answers and typing.is_reply:
            await live.send(group_of_session(session_id), {"type": "chat.typing", "sender": "human"})

    async def _mark_read(self, look: Look) -> None:
        """Mark what is shown as read by this member, and refresh the lists of their other consoles; after a new note
        this one's too, because its count of mentions may have changed."""
        if look == self._read or look.at is None or look.at.what != "company" or look.seq <= 0:
            return
        before, self._read = self._read, look
        has_new_note = look.note and (before is None or (before.at, before.note) != (look.at, look.note))
        user, tenant_id = self.scope["user"], self.tenant_id
        assert tenant_id is not None
        with suppress(DatabaseError, NotFound, RedisError):
            if await in_scope(tenant_id, partial(reading.mark_read, up_to=look.seq), look.at.pk, user):
                event = {"type": "console.changed", "what": "read", "by": "" if has_new_note else self.channel_name}
                await live.send(group_of_member(tenant_id, user.pk), event)

    async def console_ended(self, event: dict[str, object]) -> None:
        """Close the socket after a logout or the end of the membership."""
        await self.close(NOT_AUTHENTICATED)

    async def console_changed(self, event: dict[str, Any]) -> None:
        """Forward what changed, except this console's own coming and going."""
        if event.get("by") == self.channel_name:
            return
        ids: dict[str, str] = {name: event[name] for name in ("task", "session") if name in event}
        await self.send_json({"type": "changed", "what": event["what"], **ids})

    async def console_choice(self, event: dict[str, object]) -> None:
        """The member chose which notices they want, here or in another window."""
        assert self.tenant_id is not None
        with suppress(DatabaseError):
            self._choice = await in_scope(self.tenant_id, alert_choice, self.scope["user"])

    async def console_notice(self, event: dict[str, object]) -> None:
        """Send a notice that concerns the member, unless they want none or have their quiet hours."""
        choice, notice = self._choice, Notice.from_event(event)
        if choice is None or not (choice.sound or choice.desktop) or choice.quiet_until(now()) is not None:
            return
        assert self.tenant_id is not None
        with suppress(DatabaseError, NotFound):
            if not event["to_everyone"] or await in_scope(self.tenant_id, concerns, notice, self.scope["user"]):
                await self.send_json(notice.as_frame(sound=choice.sound, desktop=choice.desktop))

    async def console_typing(self, event: dict[str, Any]) -> None:
        """Forward who is typing in the conversation that is open, except this member in another window."""
        is_open = self.viewing is not None and str(self.viewing.pk) == event["session"]
        if is_open and event.get("user") != str(self.scope["user"].pk):
            told: dict[str, str] = {name: event[name] for name in ("session", "sender", "name") if name in event}
            await self.send_json({"type": "typing", **told})


def _answers(session_id: UUID, user: User) -> bool:
    """Whether this member answers the conversation. Raises `SilasError` for those who may answer none, and
    `NotFound`."""
    require_staff(user)
    session = session_by_id(session_id)
    return session.owner == Owner.HUMAN and session.owner_user_id == user.pk


def _record_visit(user: User, tenant_id: UUID) -> tuple[Head, AlertChoice | None]:
    """Record the visit and return the head of the tenant's audit log, and which notices the member wants."""
    teams.record_presence(user)
    return head_of(tenant_id), alert_choice(user)


def _extend_visits(user_ids: set[UUID], tenant_id: UUID) -> Head:
    visits.extend_visits(user_ids)
    return head_of(tenant_id)


def _parse_frame(text: str) -> Look | Typing | None:
    """Return what a `look` or `typing` frame says; None for anything else."""
    try:
        frame = json.loads(text)
        if isinstance(frame, dict) and frame.get("type") == "typing":
            return Typing(UUID(frame["session"]), frame.get("sheet") == "reply")
        if not isinstance(frame, dict) or frame.get("type") != "look":
            return None
        named = (Viewed(what, UUID(frame[name])) for name, what in VIEWABLE.items() if frame.get(name))
        at, seq, note = next(named, None), frame.get("seq"), str(frame.get("note", ""))[:36]
    except (KeyError, ValueError, TypeError, AttributeError, RecursionError):
        return None
    return Look(at, seq if type(seq) is int and 0 < seq < MAX_SEQ else 0, note)


_open: set[ConsoleConsumer] = set()


async def sweep() -> None:
    """Refresh every console whose tenant's log has grown since the last sweep, because a message may have been lost.

    The visits of their members are extended here and not by a socket that ends, perhaps long after its computer fell
    asleep.

    Two queries per tenant. Consoles whose login has ended are closed. Raises when the database is unavailable.
    """
    mine = {console.login_id for console in _open if console.login_id}
    ended = await in_thread(logins.ended_among, mine) if mine else set()
    for console in [console for console in _open if console.login_id in ended]:
        await console.close(NOT_AUTHENTICATED)
    for tenant_id in {console.tenant_id for console in _open if console.tenant_id}:
        consoles = [console for console in _open if console.tenant_id == tenant_id]
        users = {console.scope["user"].pk for console in consoles}
        head = await in_scope(tenant_id, _extend_visits, users, tenant_id)
        for console in consoles:
            await console.refresh_if_older(head.seq)


def _member_from(scope: dict[str, Any]) -> tuple[int, Member | None]:
    user = scope["user"]
    if not user.is_authenticated:
        return NOT_AUTHENTICATED, None
    member = member_of(user, scope["session"])
    shut = member is not None and access.lacks_second_factor(scope["session"], user, member.tenant)
    return FORBIDDEN, None if shut else member


def _is_own_origin(headers: list[tuple[bytes, bytes]]) -> bool:
    """True for our own pages. Browsers always send an origin, and another site must not use the login cookie."""
    known = dict(headers)
    origin = known.get(b"origin", b"").decode("latin-1")
    return not origin or urlsplit(origin).netloc == known.get(b"host", b"").decode("latin-1")
