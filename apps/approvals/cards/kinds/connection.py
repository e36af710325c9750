"""New connections. Opened and worded by `apps.connections.services.requests`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field

from apps.approvals.cards.kinds.base import Kind
from apps.approvals.cards.risk import access_risk
from apps.approvals.cards.schemas import BoundPayload, Key
from apps.approvals.enums import ApprovalScope, CardKind, Risk
from apps.approvals.schemas import FrozenModel
from kernel.language import gettext_lazy as _


class RightsPayload(BoundPayload):
    """The permissions of a connection, before and after."""

    connection_id: Key
    before: list[Key]
    after: Annotated[list[Key], Field(min_length=1, max_length=40)]


class ConnectionBody(FrozenModel):
    service: Key
    provider: Annotated[str, Field(max_length=120)] = ""
    skill: Key
    auth_strategy: Literal["device_code", "browser_redirect", "secure_input"]


class Connection(Kind):
    kind = CardKind.CONNECTION
    label = _("New connection")
    payload = RightsPayload
    body = ConnectionBody
    scopes = frozenset({ApprovalScope.CONNECTION_MANAGE})

    def base_risk(self, payload: Mapping[str, Any]) -> Risk | None:
        return access_risk(payload["before"], payload["after"])
