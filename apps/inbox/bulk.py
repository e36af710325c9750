"""Apply one inbox action to several conversations and report the outcome of each.

One service call and one transaction per conversation, so that a refusal in one undoes nothing in another. Called by the
console, outside of any scope.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from uuid import UUID

from kernel.error_codes import ErrorCode
from kernel.errors import SilasError
from kernel.language import gettext
from kernel.tenancy import tenant_scope

AT_ONCE = 50


@dataclass(frozen=True)
class Outcome:
    """How many were changed, were so already, and were refused; `why`: the first refusal."""

    changed: int = 0
    already: int = 0
    refused: int = 0
    why: str = ""


def in_each(tenant_id: UUID, session_ids: Iterable[UUID], deed: Callable[[UUID], bool]) -> Outcome:
    """`deed` says whether it changed anything. Raises `too_many` for more than `AT_ONCE`, before anything is done."""
    chosen = list(dict.fromkeys(session_ids))
    if len(chosen) > AT_ONCE:
        raise SilasError(
            ErrorCode.TOO_MANY, gettext("Select up to {at_once} conversations.").format(at_once=AT_ONCE), status=400
        )
    changed, already, refusals = 0, 0, list[str]()
    for session_id in chosen:
        try:
            with tenant_scope(tenant_id):
                did = deed(session_id)
        except SilasError as refusal:
            refusals.append(refusal.message)
        else:
            changed, already = changed + did, already + (not did)
    return Outcome(changed, already, len(refusals), refusals[0] if refusals else "")
