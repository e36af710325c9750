"""Register the handlers of this room's bus messages: read and store submissions."""

from __future__ import annotations

from apps.bus.enums import Kind
from apps.bus.registry import on_dead_letter, register_job
from apps.knowledge import intake_indexing, intake_reading

register_job(Kind.DOCUMENT_INTAKE, intake_reading.read_intake)
register_job(Kind.DOCUMENT_INDEX, intake_indexing.index_intake)
on_dead_letter(intake_reading.give_up, Kind.DOCUMENT_INTAKE)
on_dead_letter(intake_indexing.fail, Kind.DOCUMENT_INDEX)
