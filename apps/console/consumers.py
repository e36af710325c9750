"""What tells an open console to look again? A socket of the logged-in person, in the tenant that the session has open.

Close codes: 4001 not logged in, 4003 foreign origin or no membership, 4008 too many bad frames, 1013 come back later.
Says only what changed; the pages read it anew. `ready` carries the last audit entry's number, so that a page that is
older than its line knows; the web process's sweep compares that number later on, for pokes that were lost on their way
over Redis.
"""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any, NamedTuple
from urllib.parse import urlsplit
from uuid import UUID

from channels.generic.websocket import AsyncJsonWebsocketConsumer
from django.db import Error as DatabaseError
from redis.exceptions import RedisError

from apps.audit.queries import head_of
from apps.audit.rules import Head
from apps.console import watching
from apps.console.members import Member, group_of, group_of_member, member_of
from apps.sessions.ratelimit.message_pace import Pace
from apps.sessions.schemas import POLICY_VIOLATION
from apps.tenants import access, logins, visits
from kernel import live, presence
from kernel.tenancy import in_scope, in_thread

NOT_AUTHENTICATED, FORBIDDEN, TRY_LATER = 4001, 4003, 1013
# Frames that say nothing a console may say: so many are dropped, and one more every ten seconds.
BAD_FRAMES, BAD_FRAMES_A_SECOND = 10, 0.1


# What a console can look at, and what changes for others when it does.
LOOKED_AT = {"card": "card", "session": "company"}


class Looked(NamedTuple):
    what: str
    pk: UUID


class ConsoleConsumer(AsyncJsonWebsocketConsumer):  # type: ignore[misc]
    tenant_id: UUID | None = None
    login_id = ""
    looks_at: Looked | None = None
    seq = 0
    _has_closed = False

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._looking = Pace(10, 2.0)
        self._bad = Pace(BAD_FRAMES, BAD_FRAMES_A_SECOND)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """However the socket ends, by a fault of ours too, nobody listens at it any more."""
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
        refusal, member = await in_thread(_member, self.scope)
        if member is None:
            await self.close(refusal)
            return
        self.tenant_id, self.login_id = member.tenant.pk, self.scope["session"].get(access.LOGIN, "")
        for group in self._groups():
            await self.channel_layer.group_add(group, self.channel_name)
        self.seq = (await in_scope(self.tenant_id, _arrived, self.scope["user"], self.tenant_id)).seq
        _open.add(self)
        await self.send_json({"type": "ready", "seq": self.seq})

    def _groups(self) -> list[str]:
        """Where news of the tenant comes, of this login's end, and of the membership's."""
        assert self.tenant_id is not None
        mine = [group_of(self.tenant_id), group_of_member(self.tenant_id, self.scope["user"].pk)]
        return [*mine, logins.group_of_login(UUID(self.login_id))] if self.login_id else mine

    async def disconnect(self, code: int) -> None:
        if self.tenant_id:
            await self._look(None)
            with suppress(DatabaseError):
                await in_scope(self.tenant_id, visits.record_visit, self.scope["user"])
            with suppress(RedisError):
                for group in self._groups():
                    await self.channel_layer.group_discard(group, self.channel_name)

    async def dispatch(self, message: dict[str, Any]) -> None:
        for event in live.unpack_events(message, attending=False):
            await super().dispatch(event)

    async def look(self, seq: int) -> None:
        """The tenant's log has come to `seq`: whatever was not told of it, the page reads now."""
        if seq > self.seq:
            self.seq = seq
            await self.send_json({"type": "changed", "what": "everything"})

    async def receive(self, text_data: str | None = None, bytes_data: bytes | None = None, **_: Any) -> None:
        """Consoles say which card or conversation they look at, or that they look at none. What comes too fast is
        dropped; a socket that goes on with anything else is closed."""
        if self._has_closed:
            return
        said, looked = _looked(text_data or "")
        if not said and self._bad.wait():
            await self.close(POLICY_VIOLATION)
        elif said and self.tenant_id and not self._looking.wait():
            await self._look(looked)

    async def close(self, code: int | None = None, reason: str | None = None) -> None:
        self._has_closed = True
        await super().close(code, reason)

    async def _look(self, at: Looked | None) -> None:
        """Company changes when somebody comes or goes, not each time they say that they are still there."""
        user, tenant_id, before = self.scope["user"], self.tenant_id, self.looks_at
        assert tenant_id is not None
        self.looks_at = at
        with suppress(RedisError):
            if at:
                await in_thread(watching.look, tenant_id, at.pk, user.pk)
            if before and before != at:
                await in_thread(watching.look_away, tenant_id, before.pk, user.pk)
        for changed in {one for one in (before, at) if one is not None} if before != at else ():
            event = {"type": "console.changed", "what": f"{changed.what}:{changed.pk}", "by": self.channel_name}
            await live.send(group_of(tenant_id), event)

    async def console_ended(self, event: dict[str, Any]) -> None:
        """The person was logged out here, or is no member any more."""
        await self.close(NOT_AUTHENTICATED)

    async def console_changed(self, event: dict[str, Any]) -> None:
        """Nobody is told of their own coming and going."""
        if event.get("by") == self.channel_name:
            return
        ids: dict[str, str] = {name: event[name] for name in ("task", "session") if name in event}
        await self.send_json({"type": "changed", "what": event["what"], **ids})


def _arrived(user: Any, tenant_id: UUID) -> Head:
    """Somebody is here; how far the tenant's log has come."""
    visits.record_visit(user)
    return head_of(tenant_id)


def _looked(text: str) -> tuple[bool, Looked | None]:
    """Whether the frame is one about looking, and at what."""
    try:
        frame = json.loads(text)
        said = isinstance(frame, dict) and frame.get("type") == "look"
        named = (Looked(what, UUID(frame[name])) for name, what in LOOKED_AT.items() if said and frame.get(name))
        return said, next(named, None)
    except (ValueError, TypeError, AttributeError, RecursionError):
        return False, None


_open: set[ConsoleConsumer] = set()


async def sweep() -> None:
    """Let every open console look again whose tenant's log has grown since the last sweep: a poke may have been lost.
    One query a tenant. A console whose login has ended is shut. Raises when the database is away.
    """
    mine = {console.login_id for console in _open if console.login_id}
    ended = await in_thread(logins.ended_among, mine) if mine else set()
    for console in [console for console in _open if console.login_id in ended]:
        await console.close(NOT_AUTHENTICATED)
    for tenant_id in {console.tenant_id for console in _open if console.tenant_id}:
        head = await in_scope(tenant_id, head_of, tenant_id)
        for console in [console for console in _open if console.tenant_id == tenant_id]:
            await console.look(head.seq)


def _member(scope: dict[str, Any]) -> tuple[int, Member | None]:
    user = scope["user"]
    if not user.is_authenticated:
        return NOT_AUTHENTICATED, None
    member = member_of(user, scope["session"])
    shut = member is not None and access.lacks_second_factor(scope["session"], user, member.tenant)
    return FORBIDDEN, None if shut else member


def _is_own_origin(headers: list[tuple[bytes, bytes]]) -> bool:
    """Browsers always send an origin; a page of another site must not ride on the login cookie."""
    known = dict(headers)
    origin = known.get(b"origin", b"").decode("latin-1")
    return not origin or urlsplit(origin).netloc == known.get(b"host", b"").decode("latin-1")
