"""Content that a gate holds back. Opened and worded by `apps.approvals.cards.pauses`."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from apps.approvals.cards.kinds.base import Kind
from apps.approvals.cards.schemas import BoundPayload, GateReason, Key
from apps.approvals.enums import ApprovalScope, CardKind, Pace
from kernel.language import gettext_lazy as _


class GatePayload(BoundPayload):
    """Content that gates hold back: the text of a message or of an answer, a call with its arguments, or a step."""

    pause_id: Key
    trigger: Key
    gates: Annotated[list[GateReason], Field(min_length=1, max_length=32)]
    holds: Annotated[dict[str, Any], Field(min_length=1)]


class Gate(Kind):
    kind = CardKind.GATE
    label = _("Gate")
    payload = GatePayload
    scopes = frozenset({ApprovalScope.SINGLE_STEP})
    pace = Pace.GATE
    labels_are_complete = True
