"""What is to be done with the conversations that somebody has ticked, and how is it told? Shapes and words only:
the deeds are the desk's, one at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from apps.sessions.inbox import rules, services
from apps.sessions.inbox.bulk import Outcome
from apps.sessions.inbox.enums import Snooze
from kernel.errors import SilasError

_CHOICE = SilasError("nothing_chosen", "Choose what to do with them.")


@dataclass(frozen=True)
class Deed:
    """`done`: what was done to each, in a word; `was`: how the others were already."""

    done: str
    was: str
    do: Callable[[UUID], bool]


def deed_of(given: Mapping[str, str], user: Any, *, member: Callable[[str], Any], moment: datetime) -> Deed:
    """What one press of the bar means. `member` finds who may see to a conversation; `moment` is now in the tenant's
    zone. Raises 400 where nothing of the kind was pressed."""
    if "resolve" in given:
        return Deed("resolved", "resolved", lambda pk: services.resolve(pk, user))
    if "reopen" in given:
        return Deed("opened again", "open", lambda pk: services.reopen(pk, user))
    if "assign" in given:
        to = member(given["assign"]) if given["assign"] else None
        return Deed("assigned" if to else "given to nobody", "so", lambda pk: services.assign(pk, user, to=to))
    if "snooze" in given:
        until = _until(given["snooze"], moment)
        return Deed("snoozed", "so", lambda pk: services.snooze(pk, user, until=until))
    for name, on, words in (("label", True, "labelled"), ("unlabel", False, "unlabelled")):
        if name in given:
            label = _uuid(given[name])
            return Deed(words, "so", lambda pk: services.mark(pk, user, label_id=label, on=on))  # noqa: B023  (returned at once)
    raise _CHOICE


def told(deed: Deed, outcome: Outcome) -> str:
    """`7 resolved, 1 was already. 2 were not: that is gone.`"""
    said = f"{outcome.changed} {deed.done}"
    if outcome.already:
        state = "" if deed.was == "so" else f" {deed.was}"
        said += f", {outcome.already} {_were(outcome.already)} already{state}"
    said += "."
    if outcome.refused:
        said += f" {outcome.refused} {_were(outcome.refused)} not: {outcome.why}"
    return said


def chosen(given: list[str]) -> list[UUID]:
    """Raises 400 where none was ticked."""
    if not given:
        raise SilasError("nothing_ticked", "Tick the conversations first.")
    return [_uuid(each) for each in given]


def _until(text: str, moment: datetime) -> datetime | None:
    if text not in Snooze.values:
        raise _CHOICE
    until = rules.snoozed_until(Snooze(text), moment=moment)
    return until.astimezone(UTC) if until else None


def _uuid(text: str) -> UUID:
    try:
        return UUID(text)
    except ValueError:
        raise _CHOICE from None


def _were(number: int) -> str:
    return "was" if number == 1 else "were"
