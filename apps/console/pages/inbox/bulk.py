"""Actions on several selected conversations: which action was chosen, and the message about its result."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from uuid import UUID

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from apps.inbox import rules, services
from apps.inbox.bulk import Outcome
from apps.inbox.enums import Snooze
from apps.tenants.models import User
from kernel.error_codes import ErrorCode
from kernel.errors import SilasError

_NO_ACTION = SilasError(ErrorCode.NOTHING_CHOSEN, gettext_lazy("Choose an action."))


@dataclass(frozen=True)
class Action:
    """One action on a conversation.

    `done` says how many were changed; `already` says of a number of conversations that they needed no change. Both
    keep `{number}` as a placeholder.
    """

    done: str
    already: Callable[[int], str]
    run: Callable[[UUID], bool]


def action_from(
    parameters: Mapping[str, str], user: User, *, find_member: Callable[[str], User], moment: datetime
) -> Action:
    """Return the chosen action. `moment` is now in the tenant's time zone.

    Raises `SilasError`: `nothing_chosen` 400.
    """
    if "resolve" in parameters:
        return Action(_("{number} resolved"), _already_resolved, lambda pk: services.resolve(pk, user))
    if "reopen" in parameters:
        return Action(_("{number} reopened"), _already_open, lambda pk: services.reopen(pk, user))
    if "assign" in parameters:
        to = find_member(parameters["assign"]) if parameters["assign"] else None
        done = _("{number} assigned") if to else _("{number} unassigned")
        return Action(done, _already, lambda pk: services.assign(pk, user, to=to))
    if "snooze" in parameters:
        text = parameters["snooze"]
        if text not in Snooze.values:
            raise _NO_ACTION
        until = rules.snoozed_until(Snooze(text), moment=moment)
        until = until.astimezone(UTC) if until else None
        return Action(_("{number} snoozed"), _already, lambda pk: services.snooze(pk, user, until=until))
    if "label" in parameters:
        added = _uuid(parameters["label"])
        return Action(_("{number} labelled"), _already, lambda pk: services.mark(pk, user, label_id=added, on=True))
    if "unlabel" in parameters:
        removed = _uuid(parameters["unlabel"])
        return Action(
            _("{number} unlabelled"), _already, lambda pk: services.mark(pk, user, label_id=removed, on=False)
        )
    raise _NO_ACTION


def result_message(action: Action, outcome: Outcome) -> str:
    """Return a message such as `7 resolved, 1 was already resolved. 2 were not: …`."""
    changed = action.done.format(number=outcome.changed)
    message = f"{changed}."
    if outcome.already:
        already = action.already(outcome.already).format(number=outcome.already)
        message = _("{changed}, {already}.").format(changed=changed, already=already)
    if outcome.refused:
        refused = ngettext("{number} was not: {reason}", "{number} were not: {reason}", outcome.refused)
        message += f" {refused.format(number=outcome.refused, reason=outcome.why)}"
    return message


def _already(number: int) -> str:
    return ngettext("{number} was already", "{number} were already", number)


def _already_resolved(number: int) -> str:
    return ngettext("{number} was already resolved", "{number} were already resolved", number)


def _already_open(number: int) -> str:
    return ngettext("{number} was already open", "{number} were already open", number)


def selected_ids(values: list[str]) -> list[UUID]:
    """Return the ids of the selected conversations. Raises `SilasError`: `nothing_ticked` 400."""
    if not values:
        raise SilasError(ErrorCode.NOTHING_TICKED)
    return [_uuid(value) for value in values]


def _uuid(text: str) -> UUID:
    try:
        return UUID(text)
    except ValueError:
        raise _NO_ACTION from None
