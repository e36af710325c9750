"""What this room does later: read and store what was handed in, and delete what has outlived its time."""

from __future__ import annotations

from apps.bus import retention
from apps.bus.enums import Kind
from apps.bus.registry import register_later, when_dead
from apps.memory import intake_indexing, intake_reading, memories

register_later(Kind.DOCUMENT_INTAKE, intake_reading.read)
register_later(Kind.DOCUMENT_INDEX, intake_indexing.index)
when_dead(intake_reading.give_up, Kind.DOCUMENT_INTAKE)
when_dead(intake_indexing.fail, Kind.DOCUMENT_INDEX)
retention.register(memories.clear_batch)
