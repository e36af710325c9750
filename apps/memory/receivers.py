"""What this room does later: delete what has outlived its time."""

from __future__ import annotations

from apps.bus import retention
from apps.memory import memories

retention.register(memories.clear_batch)
