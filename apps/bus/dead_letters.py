"""What happens to messages that failed for good? A person looks at them, and puts them in line again or drops them.

A message that is tried again has five new attempts and its old place in its scope; an effect that it had before is
marked and not repeated. Called by the console; both are the owner's to do, and written down.
"""

from __future__ import annotations

from uuid import UUID

from django.db.models.functions import Now

from apps.audit.enums import AuditEvent
from apps.audit.services import record
from apps.bus import wakeup
from apps.bus.enums import WORKER_OF, Queue, State
from apps.bus.models import QueueMessage
from apps.tenants.enums import Role
from apps.tenants.models import User
from apps.tenants.queries import require_role
from kernel.errors import NotFound, SilasError


def retry(message_pk: UUID, *, user: User) -> None:
    """Raises `NotFound`, 409 `not_dead` where somebody was faster, 403 for whoever is not an owner."""
    require_role(user, {Role.OWNER})
    _claim(message_pk, state=State.QUEUED, attempts=0, available_at=Now(), finished_at=None)
    queue = Queue(_tell(AuditEvent.MESSAGE_RETRIED, message_pk, user).queue)
    if worker := WORKER_OF.get(queue):
        wakeup.after_commit(worker)


def drop(message_pk: UUID, *, user: User) -> None:
    """Nobody will look for it again; it goes when what was done goes (`upkeep`). Raises as `retry` does."""
    require_role(user, {Role.OWNER})
    _claim(message_pk, state=State.DROPPED)
    _tell(AuditEvent.MESSAGE_DROPPED, message_pk, user)


def _claim(message_pk: UUID, **changes: object) -> None:
    if QueueMessage.objects.filter(pk=message_pk, state=State.DEAD).update(**changes):
        return
    if QueueMessage.objects.filter(pk=message_pk).exists():
        raise SilasError("not_dead", "Somebody has dealt with this message already.", status=409)
    raise NotFound("message")


def _tell(event: AuditEvent, message_pk: UUID, user: User) -> QueueMessage:
    message: QueueMessage = QueueMessage.objects.get(pk=message_pk)
    data = {"queue": message.queue, "kind": message.kind}
    record(event, actor=f"user:{user.pk}", subject=f"message:{message_pk}", data=data)
    return message
