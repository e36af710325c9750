"""Batches of similar actions. Opened and worded by `apps.work.services.batch_cards`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field

from apps.approvals.cards.kinds.base import APPROVAL, DECLINE, REJECTION, Choice, Edit, Kind, Shortcut, edit
from apps.approvals.cards.schemas import AnswerDetails, BatchPayload, Fraction, Key, Line
from apps.approvals.enums import ApprovalScope, CardKind, Pace
from apps.approvals.schemas import FrozenModel, UtcDatetime
from apps.approvals.tokens.payloads import batch_payload
from kernel.error_codes import ErrorCode
from kernel.errors import SilasError
from kernel.language import gettext, ngettext, pgettext_lazy
from kernel.language import gettext_lazy as _
from kernel.stored_texts import stored_text
from kernel.unicode_safety import truncate

if TYPE_CHECKING:
    from apps.approvals.models import Card

SELECTION = "edit_selection"


class ItemFact(FrozenModel):
    """One line about a record: its value now and after the change, or a text."""

    label: Annotated[str, Field(max_length=300)]
    text: Annotated[str, Field(max_length=310)] | None = None
    before: Annotated[str, Field(max_length=310)] | None = None
    after: Annotated[str, Field(max_length=310)] | None = None


class BatchItem(FrozenModel):
    item_id: Key
    title: Line
    actor: Annotated[str, Field(max_length=120)] = ""
    occurred_at: UtcDatetime | None = None
    reason: Annotated[str, Field(max_length=500)] = ""
    confidence: Fraction | None = None
    unusual: bool = False
    facts: Annotated[list[ItemFact], Field(max_length=40)] = Field(default_factory=list)


class BatchBody(FrozenModel):
    """The items of a batch. An `unusual` one differs from the others, is marked and not ticked (spec 0.5.4)."""

    items: list[BatchItem]
    reason_summary: Annotated[str, Field(max_length=1000)] = ""
    confidence_min: Fraction | None = None


class BatchReview(Kind):
    kind = CardKind.BATCH_REVIEW
    tells_reason = True
    label = _("Batch")
    payload = BatchPayload
    body = BatchBody
    scopes = frozenset({ApprovalScope.CONNECTION_ACT})
    choices = (APPROVAL, edit(SELECTION, stored_text("Only the ticked ones, ask again")), REJECTION)
    pace = Pace.CALM
    names_affected = True
    lists_items = True

    def disagreement(self, payload: Mapping[str, Any], body: Mapping[str, Any]) -> tuple[str, str] | None:
        """The items listed are the items bound, in that order."""
        if [item["item_id"] for item in body["items"]] == payload["item_ids"]:
            return None
        return "items", "The listed items are not the ones that an approval binds."

    def check_approval(self, card: Card, details: AnswerDetails) -> None:
        """Refuse the approval of the whole batch by a person who saw boxes and left some unticked (spec 0.5.4)."""
        left = 0 if details.ticked is None else len(set(card.payload["item_ids"]) - set(details.ticked))
        if left:
            message = ngettext(
                "{count} line is not ticked. Approve only the ticked ones, or look at the rest and tick it too.",
                "{count} lines are not ticked. Approve only the ticked ones, or look at the rest and tick it too.",
                left,
            )
            raise SilasError(ErrorCode.TICKS_UNFIT, message.format(count=left))

    def edit_for(self, card: Card, choice: Choice, details: AnswerDetails) -> Edit | None:
        """The same batch with some of its items, in the order in which they were picked (spec 5.2.4 step 5)."""
        if choice.value != SELECTION:
            return None
        bound, kept = card.payload["item_ids"], list(dict.fromkeys(details.selected))
        if not kept or len(kept) == len(bound) or not set(kept) <= set(bound):
            raise SilasError(
                ErrorCode.SELECTION_UNFIT, gettext("Tick some of the items, but not all of them."), status=400
            )
        lines = {item["item_id"]: item for item in card.body["items"]}
        items = [{**lines[item_id], "unusual": False} for item_id in kept]
        count = stored_text("{some:d} of {all:d}").format(some=len(kept), all=len(bound))
        text = replace(
            card.text,
            intent=truncate(stored_text("Only {count}: {intent}").format(count=count, intent=card.intent), 300),
            affected=stored_text("{some:d} of {all:d} items").format(some=len(kept), all=len(bound)),
            consequence={
                **card.consequence,
                "approve": stored_text("Do it for these {count:d}").format(count=len(kept)),
            },
        )
        return Edit(
            batch_payload(goal_id=card.payload["goal_id"], action=card.payload["action"], item_ids=kept),
            body={**card.body, "items": items},
            text=text,
            reads=[record for record in card.reads if record.get("item") in kept],
        )

    def choices_on(self, card: Card) -> Sequence[Choice]:
        """Where some lines deviate from the pattern, approving the selected ones comes first (spec 0.5.4)."""
        choices = super().choices_on(card)
        return sorted(choices, key=lambda choice: choice.value != SELECTION) if _is_mixed(card) else choices

    def shortcuts_on(self, card: Card) -> Mapping[str, Shortcut]:
        if not _is_mixed(card):
            return super().shortcuts_on(card)
        return {
            SELECTION: ("a", pgettext_lazy("a key", "approve selected")),
            DECLINE: ("d", pgettext_lazy("a key", "decline")),
        }


def _is_mixed(card: Card) -> bool:
    return any(item.get("unusual") for item in card.body.get("items", ()))
