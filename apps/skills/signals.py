"""Events about skills for the rooms above. Receivers run inside the sender's transaction."""

from __future__ import annotations

from kernel.events import Event

# Delete everything that was written with this skill: its name, and the actor.
skill_purged: Event[[str, str]] = Event("skill_purged")
