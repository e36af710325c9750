"""Channels for tests, and an adapter that keeps what it is to send instead of calling anybody."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar
from uuid import uuid4

from apps.contacts.enums import IdentityKind
from apps.messengers.enums import ChannelKind, MessageState
from apps.messengers.models import Channel
from apps.messengers.ports import (
    Adapter,
    Inbound,
    InboundFile,
    NotSent,
    Outbound,
    Place,
    Receipt,
    Received,
    Sent,
    Setting,
)
from apps.messengers.services import add_channel
from kernel.tenancy import tenant_scope


class Recorder(Adapter):
    """Takes JSON with the header `X-Signature: right`."""

    kind = ChannelKind.SMS
    identity = IdentityKind.PHONE
    settings: ClassVar[Sequence[Setting]] = (Setting("number", "Number"), Setting("token", "Token", secret=True))
    opt_out_words = frozenset({"stop"})
    opt_in_words = frozenset({"start"})

    def __init__(self) -> None:
        self.sent: list[tuple[Place, Outbound]] = []
        self.failures: list[Exception] = []
        self.stored: dict[str, bytes] = {}

    @property
    def texts(self) -> list[str]:
        return [message.text for _, message in self.sent]

    async def connect(self, place: Place, webhook: str) -> Mapping[str, Any]:
        if self.failures:
            raise self.failures.pop(0)
        return {"bot": "recorder"}

    def receive(self, request: Any, body: bytes, place: Place) -> Received:
        if request.headers.get("X-Signature") != "right":
            raise PermissionError
        told = json.loads(body)
        return Received(
            [message(**each) for each in told.get("messages", [])],
            [Receipt(each["id"], MessageState(each["state"])) for each in told.get("receipts", [])],
        )

    async def fetch(self, place: Place, message: Inbound) -> Inbound:
        files = tuple(InboundFile(file.name, self.stored[file.ref]) for file in message.files)
        return Inbound(**{**vars(message), "files": files})

    async def send(self, place: Place, message: Outbound) -> Sent:
        if self.failures:
            raise self.failures.pop(0)
        self.sent.append((place, message))
        return Sent(f"out-{len(self.sent)}", {"last": f"out-{len(self.sent)}"})


def message(
    text: str = "", *, peer: str = "+491701234567", files: Sequence[Mapping[str, str]] = (), **more: Any
) -> Inbound:
    listed = tuple(InboundFile(file["name"], ref=file["ref"]) for file in files)
    fields = {"external_id": str(uuid4()), "key": peer, "peer": peer, "sender": peer, "name": "Ada", **more}
    return Inbound(text=text, files=listed, **fields)


def make_channel(deployment: Any, kind: ChannelKind = ChannelKind.SMS, **values: str) -> Channel:
    with tenant_scope(deployment.tenant_id):
        return add_channel(
            kind,
            deployment_id=deployment.pk,
            name="Support",
            values=values or {"number": "+4930123", "token": "secret-token"},
            actor="user:test",
        )


__all__ = ["NotSent", "Recorder", "make_channel", "message"]
