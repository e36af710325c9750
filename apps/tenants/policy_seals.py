"""Seal active policy with the installation key, and use only what verifies (ADR 100).

Each kind of policy of a tenant has one signed list of its active items: the name and hash of each. An item that was
written, changed, copied or restored by SQL therefore does not verify, and one that was deleted is missed. Code that
changes policy calls `seal_item` or `remove_item` in the same transaction, with the values that it writes; only
`manage.py certify` seals rows as they are found.

The version of each list is also kept outside the database (policy_pins), so an older list does not verify either.
Parsed lists are cached by their text.
"""

from __future__ import annotations

import functools
import json
import logging
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.db.models import Model
from django.db.models.signals import post_delete, post_save

from apps.audit.enums import AuditEvent
from apps.audit.services import record
from apps.tenants import policy_pins
from apps.tenants.enums import PolicyKind
from apps.tenants.models import PolicySeal
from kernel import trust
from kernel.canonical import canonical_json, sha256_hex
from kernel.clock import now
from kernel.error_codes import ErrorCode
from kernel.errors import SilasError
from kernel.language import gettext
from kernel.tenancy import current_tenant_id
from kernel.tenancy.scope import current_scope

_log = logging.getLogger(__name__)
CERTIFICATE = "policy_seal"

Items = Mapping[str, str]


def seal_empty_lists(tenant_id: UUID) -> None:
    """Seal empty lists for a new tenant, so that a missing list later means that it was deleted. In its scope.

    Raises `SilasError`: `signing_key_missing` 403; `policy_pin_failed` 503.
    """
    seals = [_sealed(tenant_id, kind, 1, {}) for kind in PolicyKind]
    PolicySeal.objects.bulk_create(seals)
    # Before the COMMIT, because a tenant without pins does not verify; pins of a rolled-back tenant do no harm.
    policy_pins.pin(tenant_id, {PolicyKind(seal.kind): (seal.version, seal.items) for seal in seals})


def seal_item(kind: PolicyKind, name: str, value: Mapping[str, object]) -> None:
    """Add or replace an active item with exactly this value, in the transaction that writes it.

    Raises `SilasError`: `signing_key_missing` 403; `policy_not_certified` 409 if the list does not verify.
    """
    _change(kind, {name: digest(value)})


def remove_item(kind: PolicyKind, name: str) -> None:
    """Remove an active item. Raises as `seal_item`."""
    _change(kind, {name: None})


def digest(value: Mapping[str, object]) -> str:
    return sha256_hex(canonical_json(value))


def load_items(kind: PolicyKind) -> Items | None:
    """Names and hashes of the active items; None if the list is missing, forged or outdated."""
    rows = PolicySeal.objects.filter(kind=kind).values_list("version", "signature", "items")
    return verified_items(current_tenant_id(), kind, list(rows))


def verified_items(tenant_id: UUID, kind: PolicyKind, rows: list[tuple[Any, ...]]) -> Items | None:
    """The items of a row `(version, signature, items)` if it verifies, for callers that query it themselves; else
    None."""
    for version, signature, text in rows:
        if not trust.is_certified(CERTIFICATE, _fields(tenant_id, kind, version, text), signature):
            report_untrusted(kind, "seal", "forged")
            return None
        if problem := _compared_with_pin(tenant_id, kind, version, text):
            report_untrusted(kind, "seal", problem)
            return None
        return _parsed(text)
    report_untrusted(kind, "seal", "missing")
    return None


def report_untrusted(kind: str, name: str, problem: str) -> None:
    """Log and audit that a policy did not verify, once per process for the same problem."""
    tenant_id = current_tenant_id()
    with _lock:
        # Policy is read with every message: one forged row would otherwise fill the log and the audit chain.
        if (tenant_id, kind, name, problem) in _reported or len(_reported) >= _MOST_REPORTED:
            return
        _reported.add((tenant_id, kind, name, problem))
    _log.error(
        "%s tenant=%s kind=%s item=%s problem=%s", ErrorCode.POLICY_NOT_CERTIFIED, tenant_id, str(kind), name, problem
    )
    data = {"kind": str(kind), "item": name[:120], "problem": problem}
    record(AuditEvent.POLICY_NOT_BELIEVED, subject=f"tenant:{tenant_id}", data=data)


def not_certified_error(kind: PolicyKind) -> SilasError:
    """The error for callers that must stop because policy does not verify."""
    return SilasError(
        ErrorCode.POLICY_NOT_CERTIFIED,
        gettext(
            "The {label} in the database don't match what was activated here, so nothing was done. An"
            " operator must compare them and run “manage.py certify”."
        ).format(label=kind.label.lower()),
        status=409,
    )


def certify_rows(model: type[Model], kind: PolicyKind, value: Callable[[Any], Mapping[str, Any] | None]) -> None:
    """Make every row of a model an item of this kind: sealed when it is saved, removed when it is deleted or has no
    value. Changes that bypass `save()` do not verify."""

    def saved(instance: Any, **_: object) -> None:
        item = value(instance)
        _change(kind, {str(instance.pk): None if item is None else digest(item)})

    def deleted(instance: Any, **_: object) -> None:
        remove_item(kind, str(instance.pk))

    # `weak=False`: nothing else refers to these functions, and Django would forget them.
    post_save.connect(saved, sender=model, weak=False, dispatch_uid=f"policy:{kind.value}:saved")
    post_delete.connect(deleted, sender=model, weak=False, dispatch_uid=f"policy:{kind.value}:deleted")


def certify(kind: PolicyKind, current: Mapping[str, Mapping[str, object]]) -> int:
    """Seal these items as the whole list, replacing what was sealed; returns how many are new, changed or gone, at
    least one if there was no list. For `manage.py certify` only."""
    wanted = {name: digest(value) for name, value in current.items()}
    seal = PolicySeal.objects.select_for_update(no_key=True).filter(kind=kind).first()
    before = (
        None
        if seal is None
        else verified_items(current_tenant_id(), kind, [(seal.version, seal.signature, seal.items)])
    )
    if before == wanted:
        return 0
    pinned = policy_pins.pin_of(current_tenant_id(), kind)
    _write(seal, kind, wanted, at_least=pinned.version if pinned else 0)
    return len({*wanted.items()} ^ {*(before or {}).items()}) or 1


def reseal(*, old: str, new: str) -> None:
    """Reseal the scope's lists with a new installation key; only those that the old one had sealed."""
    for seal in PolicySeal.objects.select_for_update(no_key=True):
        kind = PolicyKind(seal.kind)
        fields = _fields(seal.tenant_id, kind, seal.version, seal.items)
        if trust.is_certified(CERTIFICATE, fields, seal.signature, by=(trust.root_of(old),)):
            signature = trust.certify(CERTIFICATE, fields, signing_key=new)
            PolicySeal.objects.filter(pk=seal.pk).update(signature=signature)
            _pin_after_commit(current_tenant_id(), kind, seal.version, seal.items, signing_key=new)


def _change(kind: PolicyKind, changes: Mapping[str, str | None]) -> None:
    seal = PolicySeal.objects.select_for_update(no_key=True).filter(kind=kind).first()
    rows = [] if seal is None else [(seal.version, seal.signature, seal.items)]
    before = verified_items(current_tenant_id(), kind, rows)
    if before is None:
        raise not_certified_error(kind)
    after = {name: value for name, value in {**before, **changes}.items() if value is not None}
    if after != before:
        _write(seal, kind, after)


def _write(seal: PolicySeal | None, kind: PolicyKind, after: Items, *, at_least: int = 0) -> None:
    tenant_id = current_tenant_id()
    current_scope().counted["policy_sealed"] = True
    fresh = _sealed(tenant_id, kind, max(seal.version if seal else 0, at_least) + 1, after)
    if seal is None:
        fresh.save(force_insert=True)
    else:
        PolicySeal.objects.filter(pk=seal.pk).update(
            version=fresh.version, items=fresh.items, signature=fresh.signature, sealed_at=fresh.sealed_at
        )
    _pin_after_commit(tenant_id, kind, fresh.version, fresh.items)


def _pin_after_commit(tenant_id: UUID, kind: PolicyKind, version: int, text: str, *, signing_key: str = "") -> None:
    """Pin after the commit. A failure is logged, and the next web process that reads the list pins it."""

    def pin() -> None:
        with suppress(SilasError):
            policy_pins.pin(tenant_id, {kind: (version, text)}, signing_key=signing_key)

    transaction.on_commit(pin)


def _sealed(tenant_id: UUID, kind: PolicyKind, version: int, after: Items) -> PolicySeal:
    text = canonical_json(dict(after))
    signature = trust.certify(CERTIFICATE, _fields(tenant_id, kind, version, text))
    return PolicySeal(tenant_id=tenant_id, kind=kind, version=version, items=text, signature=signature, sealed_at=now())


def _fields(tenant_id: UUID | None, kind: PolicyKind, version: int, text: str) -> dict[str, object]:
    return {"tenant": str(tenant_id), "kind": kind.value, "version": version, "items": text}


@functools.lru_cache(maxsize=1024)
def _parsed(text: str) -> Items:
    items: dict[str, str] = json.loads(text)
    return items


# Problems already reported by this process.
_reported: set[tuple[UUID, str, str, str]] = set()
_MOST_REPORTED = 10_000
_lock = threading.Lock()


def _compared_with_pin(tenant_id: UUID, kind: PolicyKind, version: int, text: str) -> str:
    """The problem of this version compared with its pin; empty if there is none. A version written in this scope may
    yet be rolled back, so it is not remembered."""
    pin = policy_pins.pin_of(tenant_id, kind)
    if pin is None:
        return "unpinned"
    if version < pin.version:
        # For a moment an older version may be one that a transaction read before the newer was committed.
        return "old" if time.monotonic() - pin.since > policy_pins.OVERTAKEN_SECONDS else ""
    if version == pin.version:
        return "" if policy_pins.digest_of(text) == pin.digest else "old"
    # A version of this very transaction may yet be rolled back, and a pin above it could never be reached again.
    if not current_scope().counted.get("policy_sealed"):
        policy_pins.learn(tenant_id, kind, version, text)
        if settings.SILAS_SIGNING_KEY:
            _pin_after_commit(tenant_id, kind, version, text)
    return ""
