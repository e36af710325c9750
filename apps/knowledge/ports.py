"""What the rooms above give the knowledge: accounts of outside services, and the answers that cite a document.

`connections` and `sessions` register when Django is ready. Without them no account is there, and no answer is counted.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple, Protocol
from uuid import UUID

from apps.guard.schemas import CallContext, CallFailed
from kernel.stored_texts import stored_text


@dataclass(frozen=True)
class SourceAccount:
    """An account that is open for one guarded call. `base_url` is the only place that its secrets may be sent to."""

    base_url: str
    settings: Mapping[str, object]
    secrets: Mapping[str, str] = field(repr=False)


class AccountChoice(NamedTuple):
    """A connected account that a source may read. `base_url` is where its service is."""

    id: UUID
    name: str
    base_url: str


# Lists the accounts with an address that were connected and not removed, inside the caller's scope.
Lister = Callable[[], list[AccountChoice]]
# Unseals the secrets of an account for one guarded call; enters its own scope. Raises `CallFailed`, effect-free.
Opener = Callable[[CallContext, UUID], SourceAccount]


class CitationCounter(Protocol):
    """Counts the bot's answers since a moment that cite each of these documents, inside the caller's scope."""

    def __call__(self, document_ids: Collection[UUID], *, since: datetime) -> dict[UUID, int]: ...


_accounts: list[tuple[Lister, Opener]] = []
_counters: list[CitationCounter] = []


def register_accounts(lister: Lister, opener: Opener) -> None:
    """Register the accounts; called once, by `connections`, in `ready()`."""
    _accounts[:] = [(lister, opener)]


def register_citations(counter: CitationCounter) -> None:
    """Register the counter of citations; called once, by `sessions`, in `ready()`."""
    _counters[:] = [counter]


def list_accounts() -> list[AccountChoice]:
    return _accounts[0][0]() if _accounts else []


def open_account(ctx: CallContext, connection_id: UUID) -> SourceAccount:
    """Raises `CallFailed` `connection_missing` if there is no such account that works."""
    if not _accounts:
        raise CallFailed("connection_missing", stored_text("No account is connected for this."), effect_free=True)
    return _accounts[0][1](ctx, connection_id)


def count_citations(document_ids: Collection[UUID], *, since: datetime) -> dict[UUID, int]:
    return _counters[0](document_ids, since=since) if _counters and document_ids else {}
