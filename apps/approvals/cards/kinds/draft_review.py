"""Drafts of messages. Opened and worded by `apps.work.services.drafts`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field

from apps.approvals.cards.kinds.base import APPROVAL, REJECTION, Choice, Edit, Kind, edit
from apps.approvals.cards.schemas import AnswerDetails, BoundPayload, Key, Prose
from apps.approvals.enums import ApprovalScope, CardKind
from apps.approvals.schemas import FrozenModel
from kernel.error_codes import ErrorCode
from kernel.errors import SilasError
from kernel.language import gettext
from kernel.language import gettext_lazy as _
from kernel.stored_texts import stored_text

if TYPE_CHECKING:
    from apps.approvals.models import Card

MAX_DRAFT = 20_000
EDIT, REPHRASE = "edit", "rephrase"


class ToolCallPayload(BoundPayload):
    """One call with its arguments."""

    tool: Key
    args: dict[str, Any]

    @property
    def texts(self) -> list[str]:
        return [value for value in self.args.values() if isinstance(value, str)]


class DraftBody(FrozenModel):
    """The message answered, the text to send as it is in the payload, and other facts: to whom it goes and how."""

    context: Prose = ""
    draft: Annotated[str, Field(min_length=1, max_length=20_000)]
    metadata: dict[str, object] = Field(default_factory=dict)


class DraftReview(Kind):
    kind = CardKind.DRAFT_REVIEW
    tells_reason = True
    label = _("Draft")
    payload = ToolCallPayload
    body = DraftBody
    scopes = frozenset({ApprovalScope.SINGLE_STEP})
    choices = (
        APPROVAL,
        edit(EDIT, stored_text("Save my wording, ask again")),
        edit(REPHRASE, stored_text("Have it rephrased")),
        REJECTION,
    )

    def disagreement(self, payload: Mapping[str, object], body: Mapping[str, object]) -> tuple[str, str] | None:
        """The draft shown is a text of the call."""
        if body["draft"] in ToolCallPayload.model_validate(payload).texts:
            return None
        return "draft", "The draft shown is not the one that an approval binds."

    def takes_freetext(self, payload: Mapping[str, object]) -> bool:
        return True

    def check_approval(self, card: Card, details: AnswerDetails) -> None:
        """Refuse an approval that comes with no words or with others than those it would send."""
        if details.text is None:
            return
        text = details.text.replace("\r\n", "\n").strip()
        if not text:
            raise SilasError(ErrorCode.TEXT_MISSING)
        if text != card.body["draft"].replace("\r\n", "\n").strip():
            raise SilasError(
                ErrorCode.EDIT_UNFIT,
                gettext("You changed the message. Save your wording first; it needs an approval of its own."),
            )

    def edit_for(self, card: Card, choice: Choice, details: AnswerDetails) -> Edit | None:
        """The same call with another text to send, wherever the call would have sent the draft."""
        if choice.value != EDIT:
            return None
        if not details.text or not details.text.strip() or len(details.text) > MAX_DRAFT:
            raise SilasError(ErrorCode.TEXT_MISSING)
        draft, text = card.body["draft"], details.text.replace("\r\n", "\n")
        if text == draft:
            raise SilasError(ErrorCode.EDIT_UNFIT, gettext("Nothing was changed."), status=400)
        args = {name: text if value == draft else value for name, value in card.payload["args"].items()}
        return Edit({**card.payload, "args": args}, body={**card.body, "draft": text})
