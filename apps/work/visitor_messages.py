"""Messages that a visitor reads about their work. Plain sentences without internal words (card, token, gate).

The messages are lazy: one is written into a conversation in the visitor's language. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from django.utils.functional import Promise
from django.utils.text import format_lazy

from apps.approvals.enums import DeclineReason
from apps.work.enums import WorkItemStatus as Status
from apps.work.enums import WorkReason as Reason
from kernel.language import gettext_lazy
from kernel.stored_texts import stored_text

if TYPE_CHECKING:
    from django_stubs_ext import StrOrPromise

WAITING = gettext_lazy("Waiting for approval by our team: {title}.")
# Warning on the card of work planned after such a read; stored with the card, so in English.
READ_INSTRUCTIONS = stored_text("Content read by the earlier work contained instructions to the assistant.")
APPROVED = gettext_lazy("Approved by our team: {title}.")
CHANGED = gettext_lazy("The details have changed in the meantime, so our team will review this again: {title}.")
NOTHING_CHANGED = gettext_lazy("Nothing was changed.")
PARTS_STAY = gettext_lazy("Anything already done stays in place. Our team can tell you what that was.")
_STARTED = gettext_lazy("In progress: {title}.")
_DONE = gettext_lazy("Done: {title}.")
_REVIEWED = gettext_lazy("Our team is reviewing this before it continues: {title}.")
_LONGER = gettext_lazy("This is taking a little longer: {title}. I'm trying another way.")
_OPEN = gettext_lazy(
    "I couldn't finish this: {title}. Nothing more will happen automatically, and our team has been notified."
)
_STOPPED: dict[Reason, StrOrPromise] = {
    Reason.DECLINED: gettext_lazy("We couldn't approve this change: {title}. Nothing was changed."),
    Reason.EXPIRED: gettext_lazy(
        "We couldn't review this in time, so nothing was changed: {title}. You're welcome to ask again."
    ),
    Reason.REVIEW_DECLINED: gettext_lazy("Our team reviewed this and stopped it: {title}."),
    Reason.REVIEW_EXPIRED: gettext_lazy("This needed a review that didn't happen in time, so it was stopped: {title}."),
    Reason.CANCELLED: gettext_lazy("Cancelled: {title}."),
    Reason.REPLANNED: gettext_lazy("This didn't work: {title}. I've prepared another way."),
    Reason.HANDED_OVER: gettext_lazy("Handed over, not verified: {title}. We can't check whether it was done."),
    Reason.UNCERTAIN: gettext_lazy("I couldn't confirm that this went through: {title}. Our team will check it first."),
}
# What follows "We couldn't approve this change" where the colleague gave a reason: why, and what to do next.
DECLINED_BECAUSE: dict[DeclineReason, StrOrPromise] = {
    DeclineReason.WRONG_DETAILS: gettext_lazy("Some of the details aren't right. Please check them and ask again."),
    DeclineReason.MISSING_INFORMATION: gettext_lazy("Some information is missing. Please tell us more and ask again."),
    DeclineReason.NOT_VERIFIED: gettext_lazy("We couldn't verify your identity. Please verify it and ask again."),
    DeclineReason.AGAINST_POLICY: gettext_lazy("Our policy doesn't allow it. Our team can tell you what is possible."),
    DeclineReason.ALREADY_DONE: gettext_lazy("It has already been requested or done."),
    DeclineReason.NOT_NEEDED: gettext_lazy("It's no longer needed. If you still need it, please ask again."),
}


@dataclass(frozen=True)
class Change:
    """One value of a request: what it becomes, and what it was where the visitor may read that."""

    label: str
    after: str
    before: str = ""

    @property
    def line(self) -> str:
        return f"{self.label}: {self.after}" if self.label else self.after


def lines_of(changes: Iterable[Change]) -> str:
    """The new values, a line each."""
    return "\n".join(change.line for change in changes)


def about(message: StrOrPromise, title: str) -> Promise:
    """Return the message with the title of the work item that it is about."""
    return format_lazy(message, title=title.rstrip("."))


def join(separator: str, *parts: str | Promise) -> str | Promise:
    """Join those parts that are not empty, without choosing a language yet."""
    given = [part for part in parts if part]
    return format_lazy(separator.join(["{}"] * len(given)), *given) if given else ""


def status_message(status: Status, reason: Reason, title: str) -> Promise:
    """Return the message for an item of this title that reaches this status."""
    match status:
        case Status.PENDING:
            return about(WAITING, title)
        case Status.RUNNING:
            return about(_STARTED, title)
        case Status.DONE | Status.HEALTHY:
            return about(_DONE, title)
        case Status.PAUSED:
            return about(_REVIEWED if reason == Reason.REVIEW else _LONGER, title)
        case Status.FAILED | Status.STUCK | Status.BLOCKED:
            return about(_STOPPED.get(reason, _OPEN), title)
