"""Deletes the words of notes with those of their conversation."""

from __future__ import annotations

from collections.abc import Collection
from uuid import UUID

from apps.inbox.models import Note
from apps.sessions.retention import FORGOTTEN
from apps.sessions.signals import conversations_forgotten


@conversations_forgotten.connect
def _forget(session_ids: Collection[UUID]) -> None:
    Note.objects.filter(session_id__in=session_ids).update(text=FORGOTTEN)
