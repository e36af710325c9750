"""What does a visitor read about their work? Plain sentences; our own words (card, token, gate) never appear. Pure."""

from __future__ import annotations

from apps.work.enums import WorkItemStatus as Status
from apps.work.enums import WorkReason as Reason
from kernel.llm.grounded import languages

WAITING = "A colleague will look at this before anything happens: {title}."
# For the card of what is planned after such work.
READ_INSTRUCTIONS = "What the work before this read contained instructions to the assistant."
APPROVED = "A colleague has agreed: {title}."
CHANGED = "What this is about has changed meanwhile, so a colleague will look at it once more: {title}."
NOTHING_CHANGED = "Nothing was changed."
PARTS_STAY = "What had been done by then stays; a colleague can tell you what that was."
_STARTED = "On it: {title}."
_DONE = "Done: {title}."
_REVIEWED = "A colleague is checking this before it goes on: {title}."
_LONGER = "This takes a little longer: {title}. I am looking for another way."
_OPEN = "I could not finish this: {title}. Nothing more will happen by itself, and a colleague has been told."
_STOPPED: dict[Reason, str] = {
    Reason.DECLINED: "A colleague looked at this and decided against it: {title}. Nothing was changed.",
    Reason.EXPIRED: "Nobody could look at this in time, so nothing was changed: {title}. You are welcome to ask again.",
    Reason.REVIEW_DECLINED: "A colleague checked this and stopped it: {title}.",
    Reason.REVIEW_EXPIRED: "This needed a check that did not happen in time, so it was stopped: {title}.",
    Reason.CANCELLED: "Called off: {title}.",
    Reason.REPLANNED: "This did not work out: {title}. I have prepared another way.",
    Reason.HANDED_OVER: "Handed over, not verified: {title}. Nobody here can check whether it was done.",
    Reason.UNCERTAIN: "I could not confirm that this went through: {title}. A colleague will look at it first.",
}


def all_templates() -> tuple[str, ...]:
    """Every sentence here that names a piece of work."""
    return (WAITING, APPROVED, CHANGED, _STARTED, _DONE, _REVIEWED, _LONGER, _OPEN, *_STOPPED.values())


def translate(text: str, title: str, language: str) -> str:
    """Our own sentences of `text`, which is about work of this title, in the visitor's language; the title and what a
    company wrote stay as they are."""
    subject = title.rstrip(".")
    for template in all_templates():
        text = text.replace(
            template.format(title=subject), languages.translate(template, language).format(title=subject)
        )
    return languages.translate(text, language)


def status_message(status: Status, reason: Reason, title: str) -> str:
    """What is said when an item of this title comes to this status."""
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
