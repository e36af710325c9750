"""Create and delete webhooks: an address and a secret, which is shown once and stored sealed."""

from __future__ import annotations

import secrets
from collections.abc import Collection
from uuid import UUID, uuid4, uuid5

from django.conf import settings

from apps.audit.enums import AuditEvent
from apps.audit.services import record
from apps.autonomy.enums import TaskEvent
from apps.autonomy.models import Webhook
from apps.tenants.enums import Role
from apps.tenants.models import User
from apps.tenants.queries import require_role
from kernel.error_codes import ErrorCode
from kernel.errors import NotFound, SilasError
from kernel.http.addresses import host_of, is_public_url
from kernel.language import gettext
from kernel.secrets_key import seal_secret, unseal_secret
from kernel.tenancy import current_tenant_id

_MOST = 10


def save_webhook(
    url: str, *, user: User, events: Collection[str] = (), once: UUID | None = None
) -> tuple[Webhook, str]:
    """Create a webhook; return it with its secret, which cannot be read again. Owners only.

    Idempotent by `once`: repeated, it returns the webhook that was created, without its secret.

    Raises `SilasError` 422: webhook_url, webhook_events, webhooks_full.
    """
    require_role(user, (Role.OWNER,))
    # Derived from the request's mark, so that a repeated request finds the same row.
    webhook_id = uuid5(current_tenant_id(), f"webhook:{once}") if once else uuid4()
    if (existing := Webhook.objects.filter(pk=webhook_id).first()) is not None:
        return existing, ""
    if not _is_allowed_url(url):
        raise SilasError(ErrorCode.WEBHOOK_URL)
    if set(events) - set(TaskEvent.values):
        raise SilasError(ErrorCode.WEBHOOK_EVENTS)
    if Webhook.objects.count() >= _MOST:
        raise SilasError(ErrorCode.WEBHOOKS_FULL, gettext("You can have at most {most} webhooks.").format(most=_MOST))
    secret = secrets.token_urlsafe(32)
    sealed = seal_secret(secret.encode(), belongs_to=f"webhook:{webhook_id}")
    fields = {"url": url, "events": sorted(events), "sealed_secret": sealed}
    hook, is_new = Webhook.objects.get_or_create(pk=webhook_id, defaults=fields)
    if not is_new:
        return hook, ""
    data = {"model": "autonomy.webhook", "change": "added"}
    record(AuditEvent.ADMIN_CHANGED, actor=user.actor, subject=f"row:{hook.pk}", data=data)
    return hook, secret


def delete_webhook(webhook_id: UUID, *, user: User) -> None:
    require_role(user, (Role.OWNER,))
    deleted, _ = Webhook.objects.filter(pk=webhook_id).delete()
    if not deleted:
        raise NotFound()
    data = {"model": "autonomy.webhook", "change": "removed"}
    record(AuditEvent.ADMIN_CHANGED, actor=user.actor, subject=f"row:{webhook_id}", data=data)


def secret_of(hook: Webhook) -> bytes:
    """The secret in plain text, for one delivery; never stored or logged."""
    return unseal_secret(bytes(hook.sealed_secret), belongs_to=f"webhook:{hook.pk}")


def _is_allowed_url(url: str) -> bool:
    """Whether the text of the address is outside our network. What it resolves to is checked at each delivery."""
    return bool(host_of(url, schemes=("https", "http"))) if settings.WEBHOOKS_PRIVATE else is_public_url(url)
