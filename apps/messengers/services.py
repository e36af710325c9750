"""Add, change, check and remove channels.

Inside the tenant's scope, except `connect`, which calls the provider. Secrets are sealed for their channel alone and
are never read back.
"""

from __future__ import annotations

import json
import secrets as random
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from uuid import UUID, uuid4

from apps.audit.enums import AuditEvent
from apps.audit.services import record
from apps.bus.enums import Kind
from apps.bus.services import schedule
from apps.messengers import ports, queries, webhooks
from apps.messengers.delivery import place_of, seal_place
from apps.messengers.enums import ChannelKind
from apps.messengers.models import Channel
from apps.messengers.ports import Adapter, NotSent, Outbound
from apps.tenants import vault
from apps.tenants.queries import deployment_by_id
from apps.visitors.ratelimit import HOUR, count_under
from kernel.clock import now
from kernel.error_codes import ErrorCode
from kernel.errors import SilasError
from kernel.language import gettext
from kernel.ratelimit.fixed_window import Limit
from kernel.tenancy import in_scope

if TYPE_CHECKING:
    from django_stubs_ext import StrOrPromise

MOST_CHANNELS, LONGEST_SETTING, MOST_TESTS_AN_HOUR = 50, 2000, 20


def add_channel(kind: ChannelKind, *, deployment_id: UUID, name: str, values: Mapping[str, str], actor: str) -> Channel:
    """A new channel, turned on. Raises 400 `channel_settings` with the problem of each field, 409 `too_many`;
    `NotFound` for a foreign deployment."""
    deployment = deployment_by_id(deployment_id)
    if Channel.objects.filter(removed_at=None).count() >= MOST_CHANNELS:
        raise SilasError(ErrorCode.TOO_MANY, gettext("Remove a channel that is no longer used first."))
    row = Channel(deployment=deployment, kind=kind, public_id=random.token_urlsafe(18), created_at=now())
    _fill(row, name, values, known={})
    row.save(force_insert=True)
    record(AuditEvent.CHANNEL_ADDED, actor=actor, subject=f"channel:{row.pk}", data={"kind": row.kind})
    _poll(row)
    return row


def change_channel(
    channel_id: UUID,
    *,
    actor: str,
    name: str | None = None,
    values: Mapping[str, str] | None = None,
    enabled: bool | None = None,
    versions: Collection[str] = (),
) -> Channel:
    """Change what is given; a secret that is left out or empty stays. `versions`: it must be at one of these. Raises as
    `add_channel`, and 412 `changed_meanwhile`."""
    row = queries.lock_channel(channel_id)
    if versions and str(row.version) not in versions:
        raise SilasError(ErrorCode.CHANGED_MEANWHILE)
    known = place_of(row).secrets
    given = {**row.settings, **(values or {})} if values is not None else row.settings
    if name is not None or values is not None:
        _fill(row, row.name if name is None else name, given, known=known)
    was_enabled = row.enabled
    row.enabled = row.enabled if enabled is None else enabled
    # Watches and pages that began with the version before notice by it.
    row.version += 1
    row.save()
    if row.enabled != was_enabled:
        webhooks.enqueue_change(row, sealed=bytes(row.sealed))
    data = {"kind": row.kind, "enabled": row.enabled}
    record(AuditEvent.CHANNEL_CHANGED, actor=actor, subject=f"channel:{row.pk}", data=data)
    _poll(row)
    return row


def remove_channel(channel_id: UUID, *, actor: str) -> None:
    """Turn it off for good and delete its secrets, once the provider's webhook is removed; its conversations stay."""
    row = queries.lock_channel(channel_id)
    sealed = bytes(row.sealed)
    row.enabled, row.sealed, row.removed_at = False, b"", now()
    row.version += 1
    row.save()
    if sealed:
        webhooks.enqueue_change(row, sealed=sealed)
    record(AuditEvent.CHANNEL_REMOVED, actor=actor, subject=f"channel:{row.pk}", data={"kind": row.kind})


async def connect(tenant_id: UUID, channel_id: UUID, *, webhook: str, actor: str) -> Channel:
    """Check the credentials at the provider, and tell it the webhook where it takes one. Outside of any scope; raises
    502 `channel_refused` with the provider's reason as `extra.reason`."""
    adapter, place = await in_scope(tenant_id, _opened, channel_id)
    problem, found = "", {}
    try:
        found = dict(await adapter.connect(place, webhook))
    except NotSent as refusal:
        problem = refusal.code
    # The provider was asked outside of any transaction; its answer is written afterwards, a refusal as well.
    row = await in_scope(tenant_id, _note_connection, channel_id, problem, found, actor)
    if problem:
        raise SilasError(ErrorCode.CHANNEL_REFUSED, extra={"reason": problem})
    return row


async def send_test(tenant_id: UUID, channel_id: UUID, *, peer: str, actor: str) -> None:
    """Send a short message to an address of the member's choice. Outside of any scope; raises as `connect`, and 429
    `rate_limited`."""
    count_under([Limit(f"channel_test:{tenant_id}:{channel_id}", MOST_TESTS_AN_HOUR, HOUR)])
    adapter, place = await in_scope(tenant_id, _opened, channel_id)
    text = gettext("This is a test message. Your channel works.")
    problem = ""
    try:
        await adapter.send(replace(place, peer=peer.strip(), open_for=0), Outbound(text, once=str(uuid4())))
    except NotSent as refusal:
        problem = refusal.code
    await in_scope(tenant_id, _note_connection, channel_id, problem, {}, actor)
    if problem:
        raise SilasError(ErrorCode.CHANNEL_REFUSED, extra={"reason": problem})


def reseal() -> int:
    """Seal the secrets of all channels with the tenant's active data key; returns how many changed."""
    count = 0
    for row in Channel.objects.exclude(sealed=b"").select_for_update(no_key=True):
        fresh = vault.reseal(bytes(row.sealed), belongs_to=seal_place(row))
        if fresh is not None:
            row.sealed = fresh
            row.save(update_fields=["sealed"])
            count += 1
    return count


def _fill(row: Channel, name: str, values: Mapping[str, str], *, known: Mapping[str, str]) -> None:
    """Put name, settings and secrets into the row. Raises as `add_channel`."""
    adapter = ports.adapter_of(row.kind)
    fields = {field.name: field for field in adapter.settings}
    plain = {key: str(value).strip() for key, value in values.items()}
    problems: dict[str, StrOrPromise] = {
        key: "unknown" for key in plain if key not in fields and key not in row.settings
    }
    secrets = {key: plain[key] or known.get(key, "") for key, field in fields.items() if field.secret and key in plain}
    secrets = {**{key: value for key, value in known.items() if key in fields}, **secrets}
    for key, field in fields.items():
        moved = bool(field.guards) and plain.get(key, "") != str(row.settings.get(key, "")) and key in row.settings
        if moved and known.get(field.guards) and not plain.get(field.guards):
            # Otherwise a member who may change settings could have the secret sent to a server of their own.
            problems[field.guards] = "required"
    settings: dict[str, Any] = {**row.settings}
    settings |= {key: plain.get(key, "") or fields[key].default for key in fields if not fields[key].secret}
    for key, field in fields.items():
        value = (secrets if field.secret else settings).get(key, "")
        if field.required and not value:
            problems[key] = "required"
        elif len(str(value)) > LONGEST_SETTING or "\0" in str(value):
            problems[key] = "too_long"
    row.name = " ".join(name.replace("\0", " ").split())[:80]
    if not row.name:
        problems["name"] = "required"
    problems = problems or adapter.check(settings, secrets)
    if problems:
        raise SilasError(
            ErrorCode.CHANNEL_SETTINGS, extra={"fields": {key: str(said) for key, said in problems.items()}}
        )
    row.settings = settings
    row.sealed = vault.seal(json.dumps(secrets).encode(), belongs_to=seal_place(row)) if secrets else b""


def _poll(row: Channel) -> None:
    if row.enabled and ports.adapter_of(row.kind).polls(row.settings):
        schedule(Kind.CHANNEL_POLL, scope_id=row.pk, due_at=now())


def _opened(channel_id: UUID) -> tuple[Adapter, ports.Place]:
    row = queries.channel(channel_id)
    return ports.adapter_of(row.kind), place_of(row)


def _note_connection(channel_id: UUID, problem: str, found: dict[str, object], actor: str) -> Channel:
    row = queries.lock_channel(channel_id)
    row.problem, row.problem_at = problem, now() if problem else None
    row.settings = {**row.settings, **found}
    row.save(update_fields=["problem", "problem_at", "settings"])
    data = {"kind": row.kind, "problem": problem}
    record(AuditEvent.CHANNEL_CHECKED, actor=actor, subject=f"channel:{row.pk}", data=data)
    return row
