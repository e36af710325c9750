"""What tells an open console to look again? A socket of the logged-in person, in the tenant that the session has open.

Close codes: 4001 not logged in, 4003 foreign origin or no membership. Says only what changed; the pages read it anew.
`ready` carries the last audit entry's number, so that a page that is older than its line knows.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

from channels.generic.websocket import AsyncJsonWebsocketConsumer

from apps.audit.queries import head_of
from apps.console.members import TENANT_IN_SESSION, Member, group_of, member_of
from kernel import presence
from kernel.tenancy import in_scope, in_thread

NOT_AUTHENTICATED, FORBIDDEN = 4001, 4003


class ConsoleConsumer(AsyncJsonWebsocketConsumer):  # type: ignore[misc]
    group = ""

    async def connect(self) -> None:
        presence.presence_opened()
        await self.accept()
        if not _is_own_origin(self.scope["headers"]):
            await self.close(FORBIDDEN)
            return
        refusal, member = await in_thread(_member, self.scope)
        if member is None:
            await self.close(refusal)
            return
        self.group = group_of(member.tenant.pk)
        await self.channel_layer.group_add(self.group, self.channel_name)
        head = await in_scope(member.tenant.pk, head_of, member.tenant.pk)
        await self.send_json({"type": "ready", "seq": head.seq})

    async def disconnect(self, code: int) -> None:
        presence.presence_closed()
        if self.group:
            await self.channel_layer.group_discard(self.group, self.channel_name)

    async def receive(self, text_data: str | None = None, bytes_data: bytes | None = None, **_: Any) -> None:
        """Consoles have nothing to say here; whatever comes is dropped."""

    async def console_changed(self, event: dict[str, Any]) -> None:
        await self.send_json({"type": "changed", "what": event["what"]})


def _member(scope: dict[str, Any]) -> tuple[int, Member | None]:
    user = scope["user"]
    if not user.is_authenticated:
        return NOT_AUTHENTICATED, None
    return FORBIDDEN, member_of(user, scope["session"].get(TENANT_IN_SESSION, ""))


def _is_own_origin(headers: list[tuple[bytes, bytes]]) -> bool:
    """Browsers always send an origin; a page of another site must not ride on the login cookie."""
    known = dict(headers)
    origin = known.get(b"origin", b"").decode("latin-1")
    return not origin or urlsplit(origin).netloc == known.get(b"host", b"").decode("latin-1")
