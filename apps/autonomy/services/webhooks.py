"""Create, rotate and delete webhooks: an address and a secret, which is shown once and stored sealed.

The events that a webhook may subscribe to are registered by the room that keeps their catalogue.
"""

from __future__ import annotations

import base64
import secrets
from collections.abc import Collection, Mapping
from datetime import timedelta
from uuid import UUID, uuid4, uuid5

from django.conf import settings

from apps.audit.enums import AuditEvent
from apps.audit.services import record
from apps.autonomy.models import Webhook
from apps.tenants.enums import KeyScope, Role
from apps.tenants.models import User
from apps.tenants.queries import require_role
from kernel.canonical import sha256_hex
from kernel.clock import now
from kernel.error_codes import ErrorCode
from kernel.errors import NotFound, SilasError
from kernel.http.addresses import host_of, is_public_url
from kernel.language import gettext
from kernel.secrets_key import seal_secret, unseal_secret
from kernel.tenancy import current_tenant_id

_MOST = 10
_PREFIX = "whsec_"
_event_types: dict[str, KeyScope] = {}


def register_event_types(scopes: Mapping[str, KeyScope]) -> None:
    """Let webhooks subscribe to these events, each with the scope that a limited credential needs for it."""
    _event_types.update(scopes)


def event_types() -> list[str]:
    """The events that a webhook may subscribe to."""
    return list(_event_types)


def scopes_of(events: Collection[str]) -> set[KeyScope]:
    """What a limited credential needs to subscribe to these events; to all for none."""
    return {scope for name, scope in _event_types.items() if not events or name in events}


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
    _check(url, events)
    if Webhook.objects.count() >= _MOST:
        raise SilasError(ErrorCode.WEBHOOKS_FULL, gettext("You can have at most {most} webhooks.").format(most=_MOST))
    secret, sealed = _new_secret(webhook_id)
    fields = {"url": url, "events": sorted(events), "sealed_secret": sealed}
    hook, is_new = Webhook.objects.get_or_create(pk=webhook_id, defaults=fields)
    if not is_new:
        return hook, ""
    data = {"model": "autonomy.webhook", "change": "added"}
    record(AuditEvent.ADMIN_CHANGED, actor=user.actor, subject=f"row:{hook.pk}", data=data)
    return hook, secret


def lock_webhook(webhook_id: UUID) -> Webhook:
    """Lock a webhook until the scope ends. Raises `NotFound`."""
    row: Webhook | None = Webhook.objects.select_for_update(no_key=True).filter(pk=webhook_id).first()
    if row is None:
        raise NotFound()
    return row


def change_webhook(
    hook: Webhook,
    *,
    user: User,
    url: str | None = None,
    events: Collection[str] | None = None,
    enabled: bool | None = None,
) -> Webhook:
    """Change what is given of a locked webhook; one that is not enabled receives nothing. Owners only.

    Raises `SilasError` 422: webhook_url, webhook_events.
    """
    require_role(user, (Role.OWNER,))
    _check(hook.url if url is None else url, hook.events if events is None else events)
    given = {"url": url, "events": None if events is None else sorted(events), "enabled": enabled}
    changed = [name for name, value in given.items() if value is not None and value != getattr(hook, name)]
    for name in changed:
        setattr(hook, name, given[name])
    if changed:
        hook.save(update_fields=changed)
        data = {"model": "autonomy.webhook", "change": "changed"}
        record(AuditEvent.ADMIN_CHANGED, actor=user.actor, subject=f"row:{hook.pk}", data=data)
    return hook


def _check(url: str, events: Collection[str]) -> None:
    if not _is_allowed_url(url):
        raise SilasError(ErrorCode.WEBHOOK_URL)
    if set(events) - set(_event_types):
        raise SilasError(ErrorCode.WEBHOOK_EVENTS)


def delete_webhook(webhook_id: UUID, *, user: User) -> None:
    require_role(user, (Role.OWNER,))
    deleted, _ = Webhook.objects.filter(pk=webhook_id).delete()
    if not deleted:
        raise NotFound()
    data = {"model": "autonomy.webhook", "change": "removed"}
    record(AuditEvent.ADMIN_CHANGED, actor=user.actor, subject=f"row:{webhook_id}", data=data)


def rotate_secret(webhook_id: UUID, *, user: User, overlap: timedelta, mark: str = "") -> tuple[Webhook, str]:
    """Give the webhook another secret, which is returned once; the one before signs as well until `overlap` is over.

    `mark` is the `secret_mark` of the secret to replace, so that a repeated request replaces nothing. Owners only.
    Raises `NotFound` for another tenant's, 412 `changed_meanwhile`.
    """
    require_role(user, (Role.OWNER,))
    hook = lock_webhook(webhook_id)
    if mark and mark != secret_mark(hook):
        raise SilasError(ErrorCode.CHANGED_MEANWHILE)
    hook.previous_secret, hook.previous_until = bytes(hook.sealed_secret), now() + overlap
    secret, hook.sealed_secret = _new_secret(webhook_id)
    hook.save(update_fields=["sealed_secret", "previous_secret", "previous_until"])
    data = {"model": "autonomy.webhook", "change": "changed"}
    record(AuditEvent.ADMIN_CHANGED, actor=user.actor, subject=f"row:{webhook_id}", data=data)
    return hook, secret


def secret_mark(hook: Webhook) -> str:
    """Names the webhook's present secret without telling anything of it."""
    return sha256_hex(bytes(hook.sealed_secret))[:32]


def signing_keys(hook: Webhook) -> list[bytes]:
    """The keys that sign a delivery now, newest first, in plain text; never stored or logged."""
    sealed = [hook.sealed_secret]
    if hook.previous_secret is not None and hook.previous_until is not None and hook.previous_until > now():
        sealed.append(hook.previous_secret)
    return [_key(unseal_secret(bytes(each), belongs_to=f"webhook:{hook.pk}")) for each in sealed]


def _new_secret(webhook_id: UUID) -> tuple[str, bytes]:
    secret = _PREFIX + base64.b64encode(secrets.token_bytes(32)).decode()
    return secret, seal_secret(secret.encode(), belongs_to=f"webhook:{webhook_id}")


def _key(secret: bytes) -> bytes:
    """The bytes that sign. A secret without the prefix is from before Standard Webhooks and signs as it is."""
    prefix = _PREFIX.encode()
    return base64.b64decode(secret.removeprefix(prefix)) if secret.startswith(prefix) else secret


def _is_allowed_url(url: str) -> bool:
    """Whether the text of the address is outside our network. What it resolves to is checked at each delivery."""
    return bool(host_of(url, schemes=("https", "http"))) if settings.WEBHOOKS_PRIVATE else is_public_url(url)
