"""News about skills for the rooms above. Receivers run inside the transaction that made the change."""

from __future__ import annotations

from kernel.events import Event

# Everything that was written with this skill shall go: its name, and who says so.
skill_purged: Event[[str, str]] = Event("skill_purged")
