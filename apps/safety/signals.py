"""Events of the safety loop, sent inside the transaction of the change."""

from __future__ import annotations

from kernel.events import Event

# (at_once): tells open consoles to refresh. True when an execution began or ended or a hold changed; False for a step
# that was allowed, which may be shown with a delay.
loop_changed: Event[[bool]] = Event("loop_changed")
