"""What does the bus tell the rooms above? Receivers run in the bus's transaction; a wake-up waits for its commit."""

from apps.bus.models import QueueMessage
from kernel.events import Event

# (message): it failed for good and nobody will deliver it again; whoever owns what it stands for must say so.
message_dead: Event[[QueueMessage]] = Event("message_dead")

# (queue, scope ids): the sweep found messages that wait; wake their consumer. So a lost wake-up costs seconds only.
messages_waiting: Event[[str, list[str]]] = Event("messages_waiting")
