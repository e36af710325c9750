"""What is known of an approver's key when a signature is verified."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True)
class KeyFacts:
    """An approver's public key, when it was retired, and whether everything that it signed is void."""

    public_key: bytes
    retired_at: datetime | None = None
    void: bool = False
