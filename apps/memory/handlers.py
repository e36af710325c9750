"""Register the reading, consolidation and embedding of memories, answers about them, and clean-up."""

from __future__ import annotations

from apps.approvals.enums import CardKind
from apps.approvals.registry import on_card
from apps.bus import retention
from apps.bus.enums import Kind
from apps.bus.registry import register_job
from apps.memory import answers, consolidation, decay, graph, memories, questions, reembedding

register_job(Kind.MEMORY_READING, graph.handle_reading)
register_job(Kind.MEMORY_CONSOLIDATION, consolidation.handle_consolidation)
register_job(Kind.MEMORY_EMBEDDING, reembedding.handle_embedding)
register_job(Kind.PROVIDER_EMBEDDING, reembedding.handle_provider_embedding, recurring=True)
retention.register(memories.delete_expired_batch)
retention.register(decay.archive_unused_batch)
retention.register(consolidation.delete_log_batch)
retention.register(consolidation.delete_questions_batch)
on_card(CardKind.DECISION, questions.SUBJECT, decided=answers.apply_decision, ended=questions.dismiss_unanswered)
