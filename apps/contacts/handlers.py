"""Register the handler of this room's bus messages."""

from __future__ import annotations

from apps.bus.enums import Kind
from apps.bus.registry import on_dead_letter, register_job
from apps.contacts import erasure

register_job(Kind.PERSON_ERASURE, erasure.erase)
on_dead_letter(erasure.stop, Kind.PERSON_ERASURE)
