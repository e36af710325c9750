"""Register the consolidation of memories, and the clean-up of expired memories and of its log."""

from __future__ import annotations

from apps.bus import retention
from apps.bus.enums import Kind
from apps.bus.registry import register_job
from apps.memory import consolidation, memories

register_job(Kind.MEMORY_CONSOLIDATION, consolidation.handle_consolidation)
retention.register(memories.delete_expired_batch)
retention.register(consolidation.delete_log_batch)
