"""What does this room announce? Inside the transaction in which it happened."""

from __future__ import annotations

from kernel.events import Event

# (at once): an execution began or ended, or somebody is held or let go; or, not at once, an agent went on. For open
# consoles.
loop_changed: Event[[bool]] = Event("loop_changed")
