"""What does a visitor read about their work? Plain sentences; our own words (card, token, gate) never appear. Pure."""

from __future__ import annotations

from apps.work.enums import WorkItemStatus as Status
from apps.work.enums import WorkReason as Reason

WAITING = "A colleague will look at this before anything happens: {title}."
APPROVED = "A colleague has agreed: {title}."
_STARTED = "On it: {title}."
_DONE = "Done: {title}."
_OPEN = "I could not finish this: {title}. Nothing more will happen by itself, and a colleague has been told."
_STOPPED: dict[Reason, str] = {
    Reason.DECLINED: "A colleague looked at this and decided against it: {title}. Nothing was changed.",
    Reason.EXPIRED: "Nobody could look at this in time, so nothing was changed: {title}. You are welcome to ask again.",
    Reason.UNCERTAIN: "I could not confirm that this went through: {title}. A colleague will look at it first.",
}


def sentence(status: Status, reason: Reason, title: str) -> str:
    """What is said when an item of this title comes to this status."""
    subject = title.rstrip(".")
    match status:
        case Status.PENDING:
            return WAITING.format(title=subject)
        case Status.RUNNING:
            return _STARTED.format(title=subject)
        case Status.DONE | Status.HEALTHY:
            return _DONE.format(title=subject)
        case Status.FAILED | Status.STUCK | Status.BLOCKED | Status.PAUSED:
            return _STOPPED.get(reason, _OPEN).format(title=subject)
