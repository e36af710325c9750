"""What does a holder hold? A lease, and the reference by which others ask whether it still holds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING
from uuid import UUID

from kernel.errors import SilasError

if TYPE_CHECKING:
    from apps.bus.models import QueueMessage


@dataclass(frozen=True)
class LeaseRef:
    """A lease by name: the message's row and the fence it was taken under."""

    message_pk: UUID
    fence: int


@dataclass(frozen=True)
class Lease:
    """One delivery of one message. `fence` grows with every delivery, so a former holder's word no longer counts."""

    message: QueueMessage
    fence: int

    @property
    def ref(self) -> LeaseRef:
        return LeaseRef(self.message.pk, self.fence)


class LeaseLost(SilasError):
    """The message was given to somebody else, returned or buried in the meantime; roll back what was done for it."""

    def __init__(self) -> None:
        super().__init__("lease_lost", "This delivery is no longer ours.", status=409)


class AlreadyProcessed(SilasError):
    """Another delivery of the message has had its effect; roll back, then ack (spec 19.2.3)."""

    def __init__(self) -> None:
        super().__init__("already_processed", "This message has already had its effect.", status=409)
