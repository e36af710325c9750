"""Retry or drop dead letters: messages that failed for good.

A message that is retried has five new attempts and its old place in its scope; an effect that it already had is marked
and not repeated. An owner decides in the console or with an API key, the operator with `manage.py queue`. Both are in
the audit log; for work that belongs to no tenant, in the operator's log.
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

OPERATOR = "command:queue"
_log = logging.getLogger(__name__)


def retry(message_pk: UUID, *, user: User | None, actor: str = OPERATOR) -> None:
    """Deliver the message again. Raises `NotFound`, 409 `not_dead` when another person was first, 403 for a member who
    is not an owner. `user` None: an API key, or without an `actor` the operator."""
    message = _decide(
        message_pk,
        user,
        actor,
        AuditEvent.MESSAGE_RETRIED,
        state=State.QUEUED,
        attempts=0,
        available_at=Now(),
        finished_at=None,
    )
    if worker := WORKER_OF.get(Queue(message.queue)):
        wakeup.wake_after_commit(worker)


def drop(message_pk: UUID, *, user: User | None, actor: str = OPERATOR) -> None:
    """Close the message without its effect; `retention` deletes the row later. Raises as `retry` does."""
    _decide(message_pk, user, actor, AuditEvent.MESSAGE_DROPPED, state=State.DROPPED)


def _decide(message_pk: UUID, user: User | None, actor: str, event: AuditEvent, **changes: object) -> QueueMessage:
    if user is not None:
        require_role(user, {Role.OWNER})
        actor = f"user:{user.pk}"
    # Two people may decide at once: the row count says who was first.
    claimed = QueueMessage.objects.filter(pk=message_pk, state=State.DEAD).update(**changes)
    message: QueueMessage | None = QueueMessage.objects.filter(pk=message_pk).first()
    if message is None:
        raise NotFound()
    if not claimed:
        raise SilasError(ErrorCode.NOT_DEAD)
    if current_tenant_id() == INSTALLATION:
        _log.warning("%s queue=%s kind=%s actor=%s", event, message.queue, message.kind, actor)
    else:
        data = {"queue": message.queue, "kind": message.kind}
        record(event, actor=actor, subject=f"message:{message_pk}", data=data)
    return message
