"""Events about connections, within the room and for the rooms above. Receivers run inside the sender's transaction."""

from __future__ import annotations

from apps.connections.models import Connection, SetupRun
from kernel.events import Event

# A secret that a set-up waited for was stored.
secret_stored: Event[[SetupRun]] = Event("connection_secret_stored")
# A connection changed, for pages that show it.
connection_changed: Event[[Connection]] = Event("connection_changed")
