"""Where does a company want to be told of its tasks? An address and a secret, which is shown once and kept sealed."""

from __future__ import annotations

import secrets
from collections.abc import Collection
from typing import Any
from uuid import UUID, uuid4, uuid5

from django.conf import settings

from apps.audit.enums import AuditEvent
from apps.audit.services import record
from apps.autonomy.enums import TaskEvent
from apps.autonomy.models import Webhook
from apps.tenants.enums import Role
from apps.tenants.queries import require_role
from kernel.errors import NotFound, SilasError
from kernel.http.addresses import host_of, is_public_url
from kernel.secrets_key import seal_secret, unseal_secret
from kernel.tenancy import current_tenant_id

_MOST = 10


def save_webhook(url: str, *, user: Any, events: Collection[str] = (), once: UUID | None = None) -> tuple[Webhook, str]:
    """A new one and its secret, which nobody can read again. `once` marks what was asked: asked again, it is the one
    that was made, without its secret. Owners only. Raises `SilasError` 422: webhook_url, webhook_events, webhooks_full.
    """
    require_role(user, (Role.OWNER,))
    marked = uuid5(current_tenant_id(), f"webhook:{once}") if once else uuid4()
    if (made := Webhook.objects.filter(pk=marked).first()) is not None:
        return made, ""
    if not _may_be_called(url):
        raise SilasError("webhook_url", "A webhook has a public https address without a name and password.", status=422)
    if set(events) - set(TaskEvent.values):
        raise SilasError("webhook_events", "Nobody announces this.", status=422)
    if Webhook.objects.count() >= _MOST:
        raise SilasError("webhooks_full", f"There are {_MOST} webhooks at most.", status=422)
    secret = secrets.token_urlsafe(32)
    sealed = seal_secret(secret.encode(), belongs_to=f"webhook:{marked}")
    new = {"url": url, "events": sorted(events), "sealed_secret": sealed}
    hook, is_new = Webhook.objects.get_or_create(pk=marked, defaults=new)
    if not is_new:
        return hook, ""
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
    return unseal_secret(bytes(hook.sealed_secret), belongs_to=f"webhook:{hook.pk}")


def _may_be_called(url: str) -> bool:
    """Outside of the house, by its words; what its name stands for is looked at each time before it is called."""
    return bool(host_of(url, schemes=("https", "http"))) if settings.WEBHOOKS_PRIVATE else is_public_url(url)
