"""Summarise a conversation for the colleague who takes it over, in a few lines of what was recorded. Pure.

Built each time it is shown, from words that were really said; no model is asked. Called by the console for a
conversation that waits for a person, or has one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from apps.sessions import person_wanted, rules
from apps.sessions.chronicle import SAID
from apps.sessions.enums import Owner, Sender
from apps.sessions.models import ChatSession, ChronicleEntry
from kernel.language import gettext, gettext_lazy
from llm.offline import intents

ASKED_AT_MOST = 3
QUOTED_AT_MOST = 6
_WHY = {
    person_wanted.ASKED: gettext_lazy("The visitor asked for a person."),
    person_wanted.UNANSWERED: gettext_lazy("The bot couldn't answer."),
    person_wanted.WORK: gettext_lazy("A promised task wasn't completed."),
    "identity": gettext_lazy("The visitor failed identity verification too often."),
    "context": gettext_lazy("The bot reached the length limit."),
    "guard": gettext_lazy("The bot was stopped."),
}
_NOTHING_ASKED = (
    intents.is_greeting,
    intents.is_thanks,
    intents.is_goodbye,
    intents.is_yes,
    intents.is_no,
    intents.wants_person,
    intents.introduces,
)


@dataclass(frozen=True)
class Summary:
    """Why a person is wanted, in which queue, what the visitor `asked` (oldest first) and was last `told`."""

    why: str
    queue: str
    asked: tuple[str, ...]
    told: str


def hand_over(session: ChatSession, entries: Sequence[ChronicleEntry]) -> Summary | None:
    """None unless the visitor waits for a person or a person has taken over. `entries` are the newest, oldest first."""
    waits = session.wanted_person_at is not None
    if not waits and not (session.owner == Owner.HUMAN and session.wanted_because):
        return None
    said = [entry for entry in entries if entry.kind in SAID]
    asked = [entry.text for entry in said if entry.sender == Sender.VISITOR and _asks(entry.text)]
    told = [entry.text for entry in said if entry.sender == Sender.BOT]
    return Summary(
        why(session.wanted_because),
        session.wanted_queue,
        tuple(rules.preview_of(text) for text in asked[-ASKED_AT_MOST:]),
        rules.preview_of(told[-1]) if told else "",
    )


def quoted(said: Sequence[tuple[str, str]]) -> str:
    """A conversation in lines that were really said, oldest first, from (sender, text): what the visitor asked, and
    what they were last told by the bot and by the team."""
    asked = [text for sender, text in said if sender == Sender.VISITOR and _asks(text)]
    lines = [gettext("Asked: {text}").format(text=rules.preview_of(text)) for text in asked[-QUOTED_AT_MOST:]]
    for sender, phrase in ((Sender.BOT, gettext("Bot: {text}")), (Sender.HUMAN, gettext("Team: {text}"))):
        told = [text for who, text in said if who == sender]
        lines += [phrase.format(text=rules.preview_of(told[-1]))] if told else []
    return "\n".join(lines)


def why(because: str) -> str:
    """A code of `want_person` as a sentence; codes of gates and steps carry their name behind a colon."""
    kind, _, name = because.partition(":")
    if kind == "gate" and name:
        return gettext("Handed over by one of your rules: {value}.").format(value=name.replace("_", " "))
    return str(_WHY.get(kind) or gettext("The visitor is waiting for a person."))


def _asks(text: str) -> bool:
    return not any(test(text) for test in _NOTHING_ASKED)
