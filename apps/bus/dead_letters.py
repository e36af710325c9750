"""Retry or drop dead letters: messages that failed for good.

A message that is retried has five new attempts and its old place in its scope; an effect that it already had is marked
and not repeated. The console calls `retry` and `drop` for an owner, `manage.py queue` calls `requeue` and `discard` for
the operator. Both are in the audit log; for work that belongs to no tenant, in the operator's log.
"""

from __future__ import annotations

import logging
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
from kernel.error_codes import ErrorCode
from kernel.errors import NotFound, SilasError
from kernel.tenancy import INSTALLATION, current_tenant_id

_log = logging.getLogger(__name__)


def retry(message_pk: UUID, *, user: User) -> None:
    """Raises `NotFound`, 409 `not_dead` when another person was first, 403 for a member who is not an owner."""
    require_role(user, {Role.OWNER})
    requeue(message_pk, actor=f"user:{user.pk}")


def drop(message_pk: UUID, *, user: User) -> None:
    """Raises as `retry` does. `cleanup` deletes the row later."""
    require_role(user, {Role.OWNER})
    discard(message_pk, actor=f"user:{user.pk}")


def requeue(message_pk: UUID, *, actor: str) -> None:
    """Deliver the message again. Raises `NotFound`, 409 `not_dead`."""
    _claim(message_pk, state=State.QUEUED, attempts=0, available_at=Now(), finished_at=None)
    queue = Queue(_record(AuditEvent.MESSAGE_RETRIED, message_pk, actor).queue)
    if worker := WORKER_OF.get(queue):
        wakeup.wake_after_commit(worker)


def discard(message_pk: UUID, *, actor: str) -> None:
    """Close the message without its effect. Raises `NotFound`, 409 `not_dead`."""
    _claim(message_pk, state=State.DROPPED)
    _record(AuditEvent.MESSAGE_DROPPED, message_pk, actor)


def _claim(message_pk: UUID, **changes: object) -> None:
    if QueueMessage.objects.filter(pk=message_pk, state=State.DEAD).update(**changes):
        return
    if QueueMessage.objects.filter(pk=message_pk).exists():
        raise SilasError(ErrorCode.NOT_DEAD)
    raise NotFound()


def _record(event: AuditEvent, message_pk: UUID, actor: str) -> QueueMessage:
    message: QueueMessage = QueueMessage.objects.get(pk=message_pk)
    data = {"queue": message.queue, "kind": message.kind}
    if current_tenant_id() == INSTALLATION:
        _log.warning("%s queue=%s kind=%s actor=%s", event, message.queue, message.kind, actor)
    else:
        record(event, actor=actor, subject=f"message:{message_pk}", data=data)
    return message
