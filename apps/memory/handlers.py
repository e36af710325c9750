"""Register the clean-up of expired memories."""

from __future__ import annotations

from apps.bus import retention
from apps.memory import memories

retention.register(memories.delete_expired_batch)
