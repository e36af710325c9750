"""Events of the bus. Receivers run in the sender's transaction."""

from __future__ import annotations

from apps.bus.enums import SetAside
from kernel.events import Event

# (what, actor): work stopped for good until a person looks at it. Notifies the member who asked for it (`user:<id>`),
# or the company's owners.
set_aside: Event[[SetAside, str]] = Event("set_aside")
