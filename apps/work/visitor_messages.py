"""Messages that a visitor reads about their work. Plain sentences without internal words (card, token, gate). Pure."""

from __future__ import annotations

from apps.work.enums import WorkItemStatus as Status
from apps.work.enums import WorkReason as Reason
from llm.offline import languages

WAITING = "Waiting for approval by our team: {title}."
# Warning on the card of work planned after such a read.
READ_INSTRUCTIONS = "Content read by the earlier work contained instructions to the assistant."
APPROVED = "Approved by our team: {title}."
CHANGED = "The details have changed in the meantime, so our team will review this again: {title}."
NOTHING_CHANGED = "Nothing was changed."
PARTS_STAY = "Anything already done stays in place. Our team can tell you what that was."
_STARTED = "In progress: {title}."
_DONE = "Done: {title}."
_REVIEWED = "Our team is reviewing this before it continues: {title}."
_LONGER = "This is taking a little longer: {title}. I'm trying another way."
_OPEN = "I couldn't finish this: {title}. Nothing more will happen automatically, and our team has been notified."
_STOPPED: dict[Reason, str] = {
    Reason.DECLINED: "We couldn't approve this change: {title}. Nothing was changed.",
    Reason.EXPIRED: "We couldn't review this in time, so nothing was changed: {title}. You're welcome to ask again.",
    Reason.REVIEW_DECLINED: "Our team reviewed this and stopped it: {title}.",
    Reason.REVIEW_EXPIRED: "This needed a review that didn't happen in time, so it was stopped: {title}.",
    Reason.CANCELLED: "Cancelled: {title}.",
    Reason.REPLANNED: "This didn't work: {title}. I've prepared another way.",
    Reason.HANDED_OVER: "Handed over, not verified: {title}. We can't check whether it was done.",
    Reason.UNCERTAIN: "I couldn't confirm that this went through: {title}. Our team will check it first.",
}


def all_templates() -> tuple[str, ...]:
    """Every message that names a work item."""
    return (WAITING, APPROVED, CHANGED, _STARTED, _DONE, _REVIEWED, _LONGER, _OPEN, *_STOPPED.values())


def translate(text: str, title: str, language: str) -> str:
    """Translate our own messages in `text`, which is about work of this title; the title and the company's own words
    stay unchanged."""
    subject = title.rstrip(".")
    for template in all_templates():
        text = text.replace(
            template.format(title=subject), languages.translate(template, language).format(title=subject)
        )
    return languages.translate(text, language)


def status_message(status: Status, reason: Reason, title: str) -> str:
    """Return the message for an item of this title that reaches this status."""
    subject = title.rstrip(".")
    match status:
        case Status.PENDING:
            return WAITING.format(title=subject)
        case Status.RUNNING:
            return _STARTED.format(title=subject)
        case Status.DONE | Status.HEALTHY:
            return _DONE.format(title=subject)
        case Status.PAUSED:
            return (_REVIEWED if reason == Reason.REVIEW else _LONGER).format(title=subject)
        case Status.FAILED | Status.STUCK | Status.BLOCKED:
            return _STOPPED.get(reason, _OPEN).format(title=subject)
