"""Results that can be undone. Opened and worded by `apps.work.services.batch_cards`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from apps.approvals.cards.kinds.base import APPROVAL, APPROVE, DECLINE, REJECTION, Kind, Shortcut
from apps.approvals.cards.schemas import BatchPayload, Line
from apps.approvals.enums import ApprovalScope, CardKind, Pace, Risk
from apps.approvals.schemas import FrozenModel
from kernel.language import gettext_lazy as _
from kernel.language import pgettext_lazy

if TYPE_CHECKING:
    from apps.approvals.models import Card


class ExecutedItem(FrozenModel):
    title: Line
    outcome: Annotated[str, Field(max_length=300)] = ""
    ok: bool = True


class PostExecutionBody(FrozenModel):
    """What ran and with which outcome; the payload is the batch of reverse actions that undoing would run."""

    results: Annotated[list[ExecutedItem], Field(min_length=1, max_length=200)]
    proof: Annotated[str, Field(max_length=300)] = ""


class PostExecution(Kind):
    """Undoing takes one tap (spec 0.5.5). Leaving things as they are comes first: it is what most people want."""

    kind = CardKind.POST_EXECUTION
    label = _("Result")
    payload = BatchPayload
    body = PostExecutionBody
    scopes = frozenset({ApprovalScope.CONNECTION_ACT})
    choices = (REJECTION, APPROVAL)
    pace = Pace.CALM
    labels_are_complete = True
    declined_note = ""
    is_offered = True

    def base_risk(self, payload: Mapping[str, object]) -> Risk | None:
        return Risk.LOW

    def shortcuts_on(self, card: Card) -> Mapping[str, Shortcut]:
        """The card appears by itself right after someone pressed A, so undoing has a key of its own."""
        return {APPROVE: ("u", pgettext_lazy("a key", "undo")), DECLINE: ("d", pgettext_lazy("a key", "keep"))}
