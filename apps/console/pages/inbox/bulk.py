"""Actions on several selected conversations: which action was chosen, and the message about its result."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from apps.inbox import rules, services
from apps.inbox.bulk import Outcome
from apps.inbox.enums import Snooze
from kernel.errors import SilasError

_NO_ACTION = SilasError("nothing_chosen", "Choose an action.")


@dataclass(frozen=True)
class Action:
    """One action on a conversation.

    `done` names the result; `already` names the state of conversations that needed no change, if it has a name.
    """

    done: str
    already: str
    run: Callable[[UUID], bool]


def action_from(
    parameters: Mapping[str, str], user: Any, *, find_member: Callable[[str], Any], moment: datetime
) -> Action:
    """Return the chosen action. `moment` is now in the tenant's time zone.

    Raises `SilasError`: `nothing_chosen` 400.
    """
    if "resolve" in parameters:
        return Action("resolved", "resolved", lambda pk: services.resolve(pk, user))
    if "reopen" in parameters:
        return Action("reopened", "open", lambda pk: services.reopen(pk, user))
    if "assign" in parameters:
        to = find_member(parameters["assign"]) if parameters["assign"] else None
        return Action("assigned" if to else "unassigned", "", lambda pk: services.assign(pk, user, to=to))
    if "snooze" in parameters:
        until = _snoozed_until(parameters["snooze"], moment)
        return Action("snoozed", "", lambda pk: services.snooze(pk, user, until=until))
    if "label" in parameters:
        added = _uuid(parameters["label"])
        return Action("labelled", "", lambda pk: services.mark(pk, user, label_id=added, on=True))
    if "unlabel" in parameters:
        removed = _uuid(parameters["unlabel"])
        return Action("unlabelled", "", lambda pk: services.mark(pk, user, label_id=removed, on=False))
    raise _NO_ACTION


def result_message(action: Action, outcome: Outcome) -> str:
    """Return a message such as `7 resolved, 1 was already resolved. 2 were not: …`."""
    message = f"{outcome.changed} {action.done}"
    if outcome.already:
        state = f" {action.already}" if action.already else ""
        message += f", {outcome.already} {_were(outcome.already)} already{state}"
    message += "."
    if outcome.refused:
        message += f" {outcome.refused} {_were(outcome.refused)} not: {outcome.why}"
    return message


def selected_ids(values: list[str]) -> list[UUID]:
    """Return the ids of the selected conversations. Raises `SilasError`: `nothing_ticked` 400."""
    if not values:
        raise SilasError("nothing_ticked", "Select conversations first.")
    return [_uuid(value) for value in values]


def _snoozed_until(text: str, moment: datetime) -> datetime | None:
    if text not in Snooze.values:
        raise _NO_ACTION
    until = rules.snoozed_until(Snooze(text), moment=moment)
    return until.astimezone(UTC) if until else None


def _uuid(text: str) -> UUID:
    try:
        return UUID(text)
    except ValueError:
        raise _NO_ACTION from None


def _were(number: int) -> str:
    return "was" if number == 1 else "were"
