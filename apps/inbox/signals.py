"""Events of the inbox, raised inside the transaction that changed the conversation."""

from __future__ import annotations

from collections.abc import Collection
from uuid import UUID

from apps.inbox.models import Note
from apps.inbox.sla_models import SlaClock
from kernel.events import Event

# (clock, the ids of the members who are responsible): its target was missed; raised once for each.
sla_missed: Event[[SlaClock, Collection[UUID]]] = Event("sla_missed")
# (note, the ids of the members whom it mentions)
members_mentioned: Event[[Note, Collection[UUID]]] = Event("members_mentioned")
