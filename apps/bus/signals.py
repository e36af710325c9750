"""What does the bus tell the rooms above? Receivers run in the bus's transaction."""

from apps.bus.models import QueueMessage
from kernel.events import Event

# (message): it failed for good and nobody will deliver it again; whoever owns what it stands for must say so.
message_dead: Event[[QueueMessage]] = Event("message_dead")
