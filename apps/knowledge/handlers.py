"""Register the handlers of this room's bus messages and cards: read and store submissions, cluster and close gaps."""

from __future__ import annotations

from apps.approvals.enums import CardKind
from apps.approvals.registry import on_card
from apps.bus.enums import Kind
from apps.bus.registry import on_dead_letter, register_job
from apps.knowledge import gaps, intake_indexing, intake_reading, sources

register_job(Kind.DOCUMENT_INTAKE, intake_reading.read_intake)
register_job(Kind.DOCUMENT_INDEX, intake_indexing.index_intake)
register_job(Kind.GAP_CLUSTERING, gaps.handle_clustering)
register_job(Kind.SOURCE_SYNC, sources.handle_sync, recurring=True)
on_card(CardKind.DECISION, gaps.SUBJECT, decided=gaps.apply_decision, ended=gaps.end_draft)
on_dead_letter(intake_reading.give_up, Kind.DOCUMENT_INTAKE)
on_dead_letter(intake_indexing.fail, Kind.DOCUMENT_INDEX)
