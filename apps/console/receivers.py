"""Which news reaches open consoles? Cards, conversations and work that changed; a poke after commit, never content."""

from __future__ import annotations

from uuid import UUID

from apps.approvals.models import Card
from apps.approvals.signals import card_changed
from apps.console.members import group_of
from apps.sessions.signals import session_changed
from apps.work.models import WorkItem
from apps.work.signals import work_changed
from kernel.live import publish_on_commit
from kernel.tenancy import current_tenant_id


def _poke(what: str) -> None:
    publish_on_commit(group_of(current_tenant_id()), {"type": "console.changed", "what": what})


@card_changed.connect
def _card_changed(card: Card) -> None:
    _poke("cards")


@session_changed.connect
def _session_changed(session_id: UUID) -> None:
    _poke(f"session:{session_id}")


@work_changed.connect
def _work_changed(item: WorkItem, status: str, text: str, next_steps: list[str]) -> None:
    _poke(f"session:{item.session_id}" if item.session_id else "inbox")
