"""What does the bus tell the rooms above? Receivers run in the sender's transaction."""

from __future__ import annotations

from apps.bus.enums import SetAside
from kernel.events import Event

# (what, actor): nothing of it happens any more until a person has looked. Told is the member who wanted it
# (`user:<id>`), or the company's owners.
set_aside: Event[[SetAside, str]] = Event("set_aside")
