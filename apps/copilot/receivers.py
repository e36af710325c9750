"""Results that members are still shown go with the words of their conversation."""

from __future__ import annotations

from collections.abc import Collection
from uuid import UUID

from apps.copilot.services import forget_results
from apps.sessions.signals import conversations_forgotten


@conversations_forgotten.connect
def _forgotten(session_ids: Collection[UUID]) -> None:
    forget_results(session_ids)
