"""Create and change tenants, members, deployments and keys.

Every write is audited in the tenant's chain. A new account has no password until one is set by a one-time link; an API
key is shown once and stored as a hash. Called by commands, the administration, the console and the demo.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID, uuid4, uuid5

from django.contrib.auth.tokens import default_token_generator
from django.db import transaction
from django.db.models import F, Q
from django.urls import reverse
from django.utils.encoding import force_bytes
from django.utils.http import urlsafe_base64_encode

from apps.audit.enums import AuditEvent
from apps.audit.services import record
from apps.tenants import locks, queries, rules
from apps.tenants.addresses import is_email
from apps.tenants.enums import IdentityAlgorithm, KeyScope, Role
from apps.tenants.models import ApiKey, Deployment, IdentityKey, Membership, MessageKey, Tenant, User
from apps.tenants.signals import member_removed, role_changed, tenant_changed
from kernel import timezones
from kernel.canonical import sha256_hex
from kernel.clock import now
from kernel.error_codes import ErrorCode
from kernel.errors import NotFound, SilasError
from kernel.language import gettext
from kernel.secrets_key import seal_secret
from kernel.tenancy import current_tenant_id, tenant_scope
from llm.models import is_known

_PREFIX_LENGTH = 9
_USE_RECORDED_EVERY = timedelta(minutes=5)
LONGEST_OVERLAP = timedelta(days=7)
# Settings whose values are audited. Of texts, only the fact that they changed is.
_AUDITED_VALUES = frozenset(
    {"enabled", "allowed_origins", "theme", "languages", "model_names", "timezone", "opening_hours", "pictures"}
)


@dataclass(frozen=True)
class NewMember:
    """A membership. `welcome` is the path of the one-time link for a new account; empty for an existing one."""

    membership: Membership
    welcome: str = ""


@dataclass(frozen=True)
class NewApiKey:
    """The row and the key itself, which is only available here; empty if the request was repeated."""

    row: ApiKey
    key: str


@dataclass(frozen=True)
class NewIdentityKey:
    """The row and, for HS256, the secret itself, which is only available here."""

    row: IdentityKey
    secret: str = ""


def create_tenant(
    slug: str,
    *,
    name: str,
    owner_email: str,
    owner_name: str = "",
    owner_password: str | None = None,
    timezone: str = "Europe/London",
    actor: str = "system",
) -> NewMember:
    """Create a tenant with its first owner. Raises `SilasError("tenant_exists")` 409, 422 `unknown_timezone`."""
    _check_zone(timezone)
    # The tenant's scope has to set its values in the outermost transaction.
    with transaction.atomic(savepoint=False):
        tenant, is_new = Tenant.objects.get_or_create(slug=slug, defaults={"name": name, "timezone": timezone})
        if not is_new:
            raise SilasError(ErrorCode.TENANT_EXISTS, gettext("A company {slug} already exists.").format(slug=slug))
        with tenant_scope(tenant):
            record(AuditEvent.TENANT_CREATED, actor=actor, subject=f"tenant:{tenant.pk}")
            return add_member(owner_email, role=Role.OWNER, full_name=owner_name, password=owner_password, actor=actor)


def change_tenant(tenant: Tenant, *, actor: str = "system", **changes: str) -> Tenant:
    """Write the changed ones of `changes` (name, timezone). Raises `SilasError("unknown_timezone")` 422."""
    if "timezone" in changes:
        _check_zone(changes["timezone"])
    if changed := _apply(tenant, changes):
        with tenant_scope(tenant):
            tenant.save(update_fields=changed)
            record(AuditEvent.TENANT_CHANGED, actor=actor, subject=f"tenant:{tenant.pk}", data={"fields": changed})
            tenant_changed()
    return tenant


def add_member(
    email: str, *, role: Role, full_name: str = "", password: str | None = None, actor: str = "system"
) -> NewMember:
    """Make the user with this address a member of the scope's tenant. `full_name` and `password` are used if the
    account does not exist yet. Raises `SilasError("invalid_email")`, and `SilasError("member_exists")` 409.
    """
    check_email(email)
    user, is_new = _get_or_create_user(email, full_name=full_name, password=password)
    membership, joined = Membership.objects.get_or_create(user=user, defaults={"role": role})
    if not joined:
        raise SilasError(ErrorCode.MEMBER_EXISTS)
    record(AuditEvent.MEMBER_ADDED, actor=actor, subject=f"user:{user.pk}", data={"role": str(role)})
    return NewMember(membership, welcome_path(user) if is_new and password is None else "")


def change_role(membership: Membership, role: Role, *, actor: str = "system") -> None:
    """Change a member's role. Raises `SilasError("last_owner")` 409 if no owner would be left."""
    if role != Role.OWNER:
        _require_another_owner(membership)
    before = locks.lock_role(membership.pk)
    if Membership.objects.filter(pk=membership.pk).exclude(role=role).update(role=role):
        data = {"role": str(role), "before": before}
        record(AuditEvent.ROLE_CHANGED, actor=actor, subject=f"user:{membership.user_id}", data=data)
        role_changed(membership.user_id, Role(role), actor)


def remove_member(membership: Membership, *, actor: str = "system") -> None:
    """Remove a member.

    The account and the person's decisions stay. Raises `SilasError("last_owner")` 409 as `change_role` does.
    """
    _require_another_owner(membership)
    removed, _ = Membership.objects.filter(pk=membership.pk).delete()
    if removed:
        data = {"role": str(membership.role)}
        record(AuditEvent.MEMBER_REMOVED, actor=actor, subject=f"user:{membership.user_id}", data=data)
        member_removed(membership.user_id)


def _require_another_owner(membership: Membership) -> None:
    """Lock the tenant's owners first: of two who demote each other at once, the second is refused."""
    locks.lock_owners()
    if queries.is_last_owner(membership):
        raise SilasError(ErrorCode.LAST_OWNER, rules.LAST_OWNER)


def check_email(email: str) -> None:
    """Raises `SilasError("invalid_email")`."""
    if not is_email(email):
        raise SilasError(
            ErrorCode.INVALID_EMAIL, gettext("{email!r} is not a valid email address.").format(email=email[:80])
        )


def _get_or_create_user(email: str, *, full_name: str, password: str | None) -> tuple[User, bool]:
    """The user with this e-mail address, ignoring case, and whether it was created."""
    user = User.objects.filter(email__iexact=email).first()
    if user is not None:
        return user, False
    first, _, last = full_name.partition(" ")
    return User.objects.create_user(email, password, first_name=first, last_name=last), True


def welcome_path(user: User) -> str:
    """Path of the page where `user` sets a password, once, within three days."""
    who = urlsafe_base64_encode(force_bytes(user.pk))
    return reverse("console-welcome", args=[who, default_token_generator.make_token(user)])


def set_first_password(user: User, password: str) -> bool:
    """Set the password unless it changed meanwhile; returns whether this call did.

    Of two uses of one link, the first wins.
    """
    before = user.password
    user.set_password(password)
    # By the password that was read: two uses of one link cannot both set it.
    return User.objects.filter(pk=user.pk, password=before).update(password=user.password) == 1


def create_deployment(slug: str, *, actor: str = "system", **fields: object) -> Deployment:
    """Create a deployment of the scope's tenant.

    Raises `SilasError("invalid_deployment")` with the problems by field.
    """
    _check_deployment(fields)
    deployment: Deployment = Deployment.objects.create(slug=slug, **fields)
    record(AuditEvent.DEPLOYMENT_CREATED, actor=actor, subject=f"deployment:{deployment.pk}")
    return deployment


def change_deployment(deployment: Deployment, *, actor: str = "system", **changes: object) -> Deployment:
    """Write the changed ones of `changes`. Raises `SilasError("invalid_deployment")` with the problems by field."""
    _check_deployment(changes)
    before = {name: getattr(deployment, name) for name in changes}
    if changed := _apply(deployment, changes):
        deployment.save(update_fields=changed)
        data: dict[str, object] = {"fields": changed}
        if plain := [name for name in changed if name in _AUDITED_VALUES]:
            data["before"] = {name: _audit_value(name, before[name]) for name in plain}
            data["after"] = {name: _audit_value(name, changes[name]) for name in plain}
        record(AuditEvent.DEPLOYMENT_CHANGED, actor=actor, subject=f"deployment:{deployment.pk}", data=data)
    return deployment


def _audit_value(name: str, value: Any) -> object:
    """A setting in the form that the audit log accepts, which refuses prose: spans joined by a plus, free text as a
    digest."""
    if name == "opening_hours":
        return {day: "+".join(spans.replace(" ", "").split(",")) for day, spans in value.items()}
    if name == "theme":
        return {key: sha256_hex(text)[:16] if key in ("font", "launcher") else text for key, text in value.items()}
    if name == "pictures":
        return {kind: picture["file"] for kind, picture in value.items()}
    return value


def deployment_problems(fields: Mapping[str, object]) -> dict[str, str]:
    """Problems of these settings, by field, with the models that this installation knows."""
    return rules.deployment_problems(fields, knows_model=is_known)


def _check_deployment(fields: Mapping[str, object]) -> None:
    if problems := deployment_problems(fields):
        raise SilasError(ErrorCode.INVALID_DEPLOYMENT, " ".join(problems.values()), extra={"fields": problems})


def _check_zone(zone: str) -> None:
    """Raises if the zone is unknown or empty: days and schedules of a company depend on it."""
    if problem := timezones.timezone_error(zone) or ("" if zone else gettext("A company needs a time zone.")):
        raise SilasError(ErrorCode.UNKNOWN_TIMEZONE, problem)


def _apply(row: object, changes: Mapping[str, object]) -> list[str]:
    """Set the attributes that differ; returns their names."""
    changed = [name for name, value in changes.items() if getattr(row, name) != value]
    for name in changed:
        setattr(row, name, changes[name])
    return changed


def create_api_key(
    name: str,
    *,
    scopes: Iterable[KeyScope] = (),
    expires_at: datetime | None = None,
    actor: str = "system",
    once: UUID | None = None,
) -> NewApiKey:
    """Create a REST API key of the scope's tenant: 256 random bits, stored as a hash only. `scopes` limit its rights.

    `once` makes the request idempotent: repeated with the same value, it returns the first row without the key. Raises
    `SilasError("invalid_expiry")` 422 for a time that has passed.
    """
    if expires_at is not None and expires_at <= now():
        raise SilasError(ErrorCode.INVALID_EXPIRY)
    key = _new_api_key()
    new = {
        "name": name,
        "prefix": key[:_PREFIX_LENGTH],
        "hashed": sha256_hex(key),
        "scopes": sorted(scopes),
        "expires_at": expires_at,
    }
    # The id is made of the request, so that the primary key decides between two copies of it.
    marked = uuid5(current_tenant_id(), f"api_key:{once}") if once else uuid4()
    row, is_new = ApiKey.objects.get_or_create(pk=marked, defaults=new)
    if not is_new:
        return NewApiKey(row, "")
    record(AuditEvent.API_KEY_CREATED, actor=actor, subject=f"api_key:{row.pk}", data={"scopes": new["scopes"]})
    return NewApiKey(row, key)


def rotate_api_key(row: ApiKey, *, overlap: timedelta = timedelta(0), actor: str = "system") -> NewApiKey:
    """Replace the secret of an API key. The one before stays valid for `overlap`, up to `LONGEST_OVERLAP`; an even
    older one ends at once. Raises `NotFound` for another tenant's key and `SilasError("api_key_ended")` 409."""
    key, until = _new_api_key(), now() + min(overlap, LONGEST_OVERLAP)
    rows = ApiKey.objects.filter(pk=row.pk)
    # From the row itself, in the one statement: two rotations at once cannot both keep the same secret alive.
    previous = {"previous_hashed": F("hashed"), "previous_until": until} if overlap else {}
    cleared = {"previous_hashed": None, "previous_until": None}
    rotated = rows.filter(Q(expires_at=None) | Q(expires_at__gt=now()), revoked_at=None).update(
        hashed=sha256_hex(key), prefix=key[:_PREFIX_LENGTH], **cleared | previous
    )
    current = rows.first()
    if current is None:
        raise NotFound()
    if not rotated:
        raise SilasError(ErrorCode.API_KEY_ENDED)
    data = {"overlap_seconds": int(overlap.total_seconds())}
    record(AuditEvent.API_KEY_ROTATED, actor=actor, subject=f"api_key:{row.pk}", data=data)
    return NewApiKey(current, key)


def _new_api_key() -> str:
    return f"sk_{secrets.token_urlsafe(32)}"


def note_api_key_use(row: ApiKey) -> None:
    """Record that the key was used, at most every few minutes and not in the audit log."""
    moment = now()
    if row.last_used_at is None or moment - row.last_used_at > _USE_RECORDED_EVERY:
        with tenant_scope(row.tenant_id):
            ApiKey.objects.filter(pk=row.pk).update(last_used_at=moment)


def revoke_api_key(row: ApiKey, *, actor: str = "system") -> bool:
    """Revoke an API key; returns whether it was active. Raises `NotFound` for another tenant's."""
    rows = ApiKey.objects.filter(pk=row.pk)
    if not rows.exists():
        raise NotFound()
    revoked: bool = rows.filter(revoked_at=None).update(revoked_at=now()) == 1
    if revoked:
        record(AuditEvent.API_KEY_REVOKED, actor=actor, subject=f"api_key:{row.pk}")
    return revoked


def add_identity_key(
    deployment: Deployment,
    *,
    key_id: str,
    algorithm: str,
    public_key: str = "",
    gate: str = "identity_verified",
    actor: str = "system",
) -> NewIdentityKey:
    """Add a key with which the deployment's website signs its visitors' identity, in addition to older ones.

    Raises `SilasError("invalid_identity_key")` for a key that does not match its algorithm, `"identity_key_exists"`
    409."""
    if problem := rules.identity_key_problem(algorithm, public_key):
        raise SilasError(ErrorCode.INVALID_IDENTITY_KEY, problem)
    if IdentityKey.objects.filter(deployment=deployment, key_id=key_id).exists():
        raise SilasError(
            ErrorCode.IDENTITY_KEY_EXISTS,
            gettext("This deployment already has a key {key_id}.").format(key_id=key_id),
        )
    row = IdentityKey(
        deployment=deployment, key_id=key_id, algorithm=algorithm, public_key=public_key.strip(), gate=gate
    )
    secret = secrets.token_urlsafe(32) if algorithm == IdentityAlgorithm.HS256 else ""
    if secret:
        row.sealed_secret = seal_secret(secret.encode(), belongs_to=queries.identity_seal(row))
    row.save(force_insert=True)
    data = {"algorithm": str(algorithm)}
    record(AuditEvent.IDENTITY_KEY_ADDED, actor=actor, subject=f"identity_key:{row.pk}", data=data)
    return NewIdentityKey(row, secret)


def retire_identity_key(row: IdentityKey, *, actor: str = "system") -> bool:
    """Retire an identity key: its signatures are no longer accepted. Levels granted by them expire as usual. Returns
    whether it was active. Raises `NotFound` for another tenant's."""
    rows = IdentityKey.objects.filter(pk=row.pk)
    if not rows.exists():
        raise NotFound()
    retired: bool = rows.filter(retired_at=None).update(retired_at=now()) == 1
    if retired:
        record(AuditEvent.IDENTITY_KEY_RETIRED, actor=actor, subject=f"identity_key:{row.pk}")
    return retired


def add_message_key(user: User, *, key_id: str, public_key: str, actor: str = "system") -> MessageKey:
    """Add a key with which a member of the scope's tenant signs messages. Raises `SilasError("not_a_member")`,
    `"invalid_message_key"` and `"message_key_exists"` 409."""
    if queries.role_of(user) is None:
        raise SilasError(ErrorCode.NOT_A_MEMBER)
    if problem := rules.identity_key_problem(IdentityAlgorithm.EDDSA, public_key):
        raise SilasError(ErrorCode.INVALID_MESSAGE_KEY, problem)
    row, is_new = MessageKey.objects.get_or_create(
        key_id=key_id, defaults={"user": user, "public_key": public_key.strip()}
    )
    if not is_new:
        raise SilasError(ErrorCode.MESSAGE_KEY_EXISTS, gettext("A key {key_id} already exists.").format(key_id=key_id))
    record(AuditEvent.MESSAGE_KEY_ADDED, actor=actor, subject=f"message_key:{row.pk}", data={"user": str(user.pk)})
    kept: MessageKey = row
    return kept


def retire_message_key(row: MessageKey, *, actor: str = "system") -> bool:
    """Retire a message key; returns whether it was active. Raises `NotFound` for another tenant's."""
    rows = MessageKey.objects.filter(pk=row.pk)
    if not rows.exists():
        raise NotFound()
    retired: bool = rows.filter(retired_at=None).update(retired_at=now()) == 1
    if retired:
        record(AuditEvent.MESSAGE_KEY_RETIRED, actor=actor, subject=f"message_key:{row.pk}")
    return retired
