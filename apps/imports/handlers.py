"""Register the handlers of this room's bus messages."""

from __future__ import annotations

from apps.bus.enums import Kind
from apps.bus.registry import on_dead_letter, register_job
from apps.imports import runs

register_job(Kind.IMPORT_READ, runs.read_run)
register_job(Kind.IMPORT_APPLY, runs.apply_part)
on_dead_letter(runs.give_up, Kind.IMPORT_READ)
on_dead_letter(runs.fail, Kind.IMPORT_APPLY)
