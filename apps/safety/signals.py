"""What does this room announce? Inside the transaction in which it happened."""

from __future__ import annotations

from kernel.events import Event

# An execution began, went on or ended, or somebody is held or let go: for open consoles.
loop_changed: Event[[]] = Event("loop_changed")
