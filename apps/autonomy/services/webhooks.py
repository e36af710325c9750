"""Where does a company want to be told of its tasks? An address and a secret, which is shown once and kept sealed."""

from __future__ import annotations

import secrets
from collections.abc import Collection
from typing import Any
from uuid import UUID

from django.conf import settings

from apps.audit.enums import AuditEvent
from apps.audit.services import record
from apps.autonomy.enums import TaskEvent
from apps.autonomy.models import Webhook
from apps.tenants.enums import Role
from apps.tenants.queries import require_role
from kernel.errors import NotFound, SilasError
from kernel.outside import host_of, is_outside_url
from kernel.secrets_key import open_secret, seal_secret

_MOST = 10


def save_webhook(url: str, *, user: Any, events: Collection[str] = ()) -> tuple[Webhook, str]:
    """A new one and its secret, which nobody can read again. Owners only. Raises `SilasError` 422: webhook_url,
    webhook_events, webhooks_full."""
    require_role(user, (Role.OWNER,))
    if not _may_be_called(url):
        raise SilasError("webhook_url", "A webhook has a public https address without a name and password.", status=422)
    if set(events) - set(TaskEvent.values):
        raise SilasError("webhook_events", "Nobody announces this.", status=422)
    if Webhook.objects.count() >= _MOST:
        raise SilasError("webhooks_full", f"There are {_MOST} webhooks at most.", status=422)
    secret = secrets.token_urlsafe(32)
    hook = Webhook(url=url, events=sorted(events))
    hook.sealed_secret = seal_secret(secret.encode(), belongs_to=f"webhook:{hook.pk}")
    hook.save()
    data = {"model": "autonomy.webhook", "change": "added"}
    record(AuditEvent.ADMIN_CHANGED, actor=user.actor, subject=f"row:{hook.pk}", data=data)
    return hook, secret


def delete_webhook(webhook_id: UUID, *, user: Any) -> None:
    require_role(user, (Role.OWNER,))
    gone, _ = Webhook.objects.filter(pk=webhook_id).delete()
    if not gone:
        raise NotFound("webhook")
    data = {"model": "autonomy.webhook", "change": "removed"}
    record(AuditEvent.ADMIN_CHANGED, actor=user.actor, subject=f"row:{webhook_id}", data=data)


def secret_of(hook: Webhook) -> bytes:
    """In memory for one letter; written nowhere."""
    return open_secret(bytes(hook.sealed_secret), belongs_to=f"webhook:{hook.pk}")


def _may_be_called(url: str) -> bool:
    """Outside of the house, by its words; what its name stands for is looked at each time before it is called."""
    return bool(host_of(url, schemes=("https", "http"))) if settings.WEBHOOKS_PRIVATE else is_outside_url(url)
