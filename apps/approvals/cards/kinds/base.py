"""What a kind of card is: what it carries, how long it waits, what its buttons mean, and how it is shown. Pure.

Only an approval of a kind that `binds` can authorize anything. Every card can be declined, and declining is the last
button unless leaving things as they are is the recommended choice (spec 0.5.3, 8.1, 8.2).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from django.utils.functional import Promise

from apps.approvals.cards.schemas import AnswerDetails, CardText, EmptyBody
from apps.approvals.enums import ApprovalScope, ApprovalVerdict, CardKind, Pace, Risk
from apps.approvals.schemas import FrozenModel
from kernel.language import gettext_lazy, pgettext_lazy

if TYPE_CHECKING:
    from apps.approvals.models import Card

APPROVE, DECLINE = "approve", "decline"


@dataclass(frozen=True)
class Choice:
    """One button: the value that it sends, the verdict that this means, and its label if the card brings none."""

    value: str
    verdict: ApprovalVerdict
    label: str = ""


APPROVAL = Choice(APPROVE, ApprovalVerdict.APPROVED)
REJECTION = Choice(DECLINE, ApprovalVerdict.DECLINED)
APPROVE_OR_DECLINE = (APPROVAL, REJECTION)


def edit(value: str, label: str) -> Choice:
    """A button that requests changes."""
    return Choice(value, ApprovalVerdict.EDIT_REQUESTED, label)


@dataclass(frozen=True)
class Edit:
    """The card that an answer asks for in place of the one answered. None keeps what that card has."""

    payload: Mapping[str, Any]
    body: Mapping[str, Any]
    text: CardText | None = None
    reads: Sequence[Mapping[str, Any]] | None = None


# The key that presses a button, and a word for what it does.
Shortcut = tuple[str, str | Promise]


class Kind:
    """One kind of card. Registered once, in `apps.approvals.cards.kinds`.

    What happens when a card is decided or ends is registered by the room that opens it (`apps.approvals.registry`).
    """

    kind: ClassVar[CardKind]
    label: ClassVar[str | Promise]
    # What an approval binds, and what is shown beside it.
    payload: ClassVar[type[FrozenModel]]
    body: ClassVar[type[FrozenModel]] = EmptyBody
    scopes: ClassVar[frozenset[ApprovalScope]]
    choices: ClassVar[tuple[Choice, ...]] = APPROVE_OR_DECLINE
    # How long it stays open.
    pace: ClassVar[Pace] = Pace.PLAN
    # Whether an approval authorizes anything.
    binds: ClassVar[bool] = True
    # Whether the card must say what it affects.
    names_affected: ClassVar[bool] = False
    # Whether its consequences are complete labels; else a label begins with Approve or Decline.
    labels_are_complete: ClassVar[bool] = False
    # What the console says about a plan on the card, after the card was declined, and before an approval is revoked.
    plan_heading: ClassVar[str | Promise] = gettext_lazy("Plan as written by the model")
    declined_note: ClassVar[str | Promise] = gettext_lazy("Nothing was changed.")
    revoking_note: ClassVar[str | Promise] = ""
    # Opened by the platform after work was done, without anybody's request.
    is_offered: ClassVar[bool] = False
    # Whether a customer is told the reason for which it is declined.
    tells_reason: ClassVar[bool] = False
    # Lists the items of a batch, which may be ticked one by one.
    lists_items: ClassVar[bool] = False

    def options(self, payload: Mapping[str, object]) -> tuple[Choice, ...]:
        """The buttons that the payload adds before the last one."""
        return ()

    def base_risk(self, payload: Mapping[str, object]) -> Risk | None:
        """The risk by kind of action; None for that of the scope."""
        return None

    def disagreement(self, payload: Mapping[str, object], body: Mapping[str, object]) -> tuple[str, str] | None:
        """The field of the body that shows something other than the payload binds, and a sentence that says so."""
        return None

    def takes_freetext(self, payload: Mapping[str, object]) -> bool:
        return bool(payload.get("allow_freetext"))

    def check_approval(self, card: Card, details: AnswerDetails) -> None:
        """Raise `SilasError` for an approval that does not fit what the person saw."""

    def edit_for(self, card: Card, choice: Choice, details: AnswerDetails) -> Edit | None:
        """The card that this answer asks for, None where the answer decides. Raises `SilasError` for an unfit edit."""
        return None

    def choices_on(self, card: Card) -> Sequence[Choice]:
        """Every choice in the order of its buttons, the recommended one first."""
        return self.all_choices(card.payload)

    def all_choices(self, payload: Mapping[str, object]) -> tuple[Choice, ...]:
        return (*self.choices[:-1], *self.options(payload), self.choices[-1])

    def shortcuts_on(self, card: Card) -> Mapping[str, Shortcut]:
        """The keys of buttons, by the value that they send."""
        return {APPROVE: ("a", pgettext_lazy("a key", "approve")), DECLINE: ("d", pgettext_lazy("a key", "decline"))}


def chosen_options(payload: Mapping[str, Any]) -> tuple[Choice, ...]:
    """The answers that a question offers."""
    options = payload.get("options", ())
    return tuple(Choice(option["value"], ApprovalVerdict.APPROVED, option["label"]) for option in options)
