"""How do a tenant, its people, its deployments and its API keys come to be and change?

Every write ends in the tenant's audit log. A new account has no password until one is set by a link that works once;
an API key is shown once and kept as a hash. Called by commands, the administration and the demo.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4, uuid5

from django.contrib.auth.tokens import default_token_generator
from django.db import transaction
from django.urls import reverse
from django.utils.encoding import force_bytes
from django.utils.http import urlsafe_base64_encode

from apps.audit.enums import AuditEvent
from apps.audit.services import record
from apps.tenants import locks, queries, rules
from apps.tenants.addresses import is_email
from apps.tenants.enums import IdentityAlgorithm, KeyScope, Role
from apps.tenants.models import ApiKey, Deployment, IdentityKey, Membership, MessageKey, Tenant, User
from apps.tenants.signals import member_removed, role_changed
from kernel import timezones
from kernel.canonical import sha256_hex
from kernel.clock import now
from kernel.errors import NotFound, SilasError
from kernel.llm.models import is_known
from kernel.secrets_key import seal_secret
from kernel.tenancy import current_tenant_id, tenant_scope

_PREFIX = 9
_USE_NOTED_EVERY = timedelta(minutes=5)
# Settings whose change is written down with what they said; of texts only that they changed.
_WRITTEN_OUT = frozenset(
    {"enabled", "allowed_origins", "theme", "languages", "model_names", "timezone", "opening_hours"}
)


@dataclass(frozen=True)
class NewMember:
    """`welcome` is the path of the one-time link of an account made just now; empty for one that was there."""

    membership: Membership
    welcome: str = ""


@dataclass(frozen=True)
class NewApiKey:
    """The row, and the key itself: this is the only time anybody sees it; "" to whoever asks for the same again."""

    row: ApiKey
    key: str


@dataclass(frozen=True)
class NewIdentityKey:
    """The row, and for HS256 the secret itself: this is the only time anybody sees it."""

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
    """A tenant with its first owner. Raises `SilasError("tenant_exists")` 409, 422 `unknown_timezone`."""
    _check_zone(timezone)
    with transaction.atomic(savepoint=False):
        tenant, is_new = Tenant.objects.get_or_create(slug=slug, defaults={"name": name, "timezone": timezone})
        if not is_new:
            raise SilasError("tenant_exists", f"There is a tenant {slug} already.", status=409)
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
    return tenant


def add_member(
    email: str, *, role: Role, full_name: str = "", password: str | None = None, actor: str = "system"
) -> NewMember:
    """Make the person with this address a member of the scope's tenant. `full_name` and `password` are for an account
    that is not there yet. Raises `SilasError("invalid_email")`, and `SilasError("member_exists")` 409.
    """
    check_email(email)
    user, is_new = _account(email, full_name=full_name, password=password)
    membership, joined = Membership.objects.get_or_create(user=user, defaults={"role": role})
    if not joined:
        raise SilasError("member_exists", "This person is a member already.", status=409)
    record(AuditEvent.MEMBER_ADDED, actor=actor, subject=f"user:{user.pk}", data={"role": str(role)})
    return NewMember(membership, welcome_path(user) if is_new and password is None else "")


def change_role(membership: Membership, role: Role, *, actor: str = "system") -> None:
    """Raises `SilasError("last_owner")` 409 when nobody could administer the tenant any more."""
    if role != Role.OWNER:
        _keep_an_owner(membership)
    before = locks.lock_role(membership.pk)
    if Membership.objects.filter(pk=membership.pk).exclude(role=role).update(role=role):
        data = {"role": str(role), "before": before}
        record(AuditEvent.ROLE_CHANGED, actor=actor, subject=f"user:{membership.user_id}", data=data)
        role_changed(membership.user_id, Role(role), actor)


def remove_member(membership: Membership, *, actor: str = "system") -> None:
    """The account stays, and what the person decided. Raises `SilasError("last_owner")` 409 as `change_role` does."""
    _keep_an_owner(membership)
    removed, _ = Membership.objects.filter(pk=membership.pk).delete()
    if removed:
        data = {"role": str(membership.role)}
        record(AuditEvent.MEMBER_REMOVED, actor=actor, subject=f"user:{membership.user_id}", data=data)
        member_removed(membership.user_id)


def _keep_an_owner(membership: Membership) -> None:
    """Under the lock of the tenant's owners: of two who demote each other at once, the second is refused."""
    locks.lock_owners()
    if queries.is_last_owner(membership):
        raise SilasError("last_owner", rules.LAST_OWNER, status=409)


def check_email(email: str) -> None:
    """Raises `SilasError("invalid_email")`."""
    if not is_email(email):
        raise SilasError("invalid_email", f"{email[:80]!r} is not an e-mail address.")


def _account(email: str, *, full_name: str, password: str | None) -> tuple[User, bool]:
    """The account of this e-mail address, whatever its case, and whether it was made just now."""
    found = User.objects.filter(email__iexact=email).first()
    first, _, last = full_name.partition(" ")
    return (found, False) if found else (_new_account(email, password, first, last), True)


def _new_account(email: str, password: str | None, first: str, last: str) -> User:
    return User.objects.create_user(email, password, first_name=first, last_name=last)


def welcome_path(user: User) -> str:
    """The address at which `user` sets a password, once, within three days."""
    who = urlsafe_base64_encode(force_bytes(user.pk))
    return reverse("console-welcome", args=[who, default_token_generator.make_token(user)])


def set_first_password(user: User, password: str) -> bool:
    """Whether this call set it: of two that come with one link, only the first does."""
    before = user.password
    user.set_password(password)
    return User.objects.filter(pk=user.pk, password=before).update(password=user.password) == 1


def create_deployment(slug: str, *, actor: str = "system", **fields: Any) -> Deployment:
    """A deployment of the scope's tenant. Raises `SilasError("invalid_deployment")` with the problems by field."""
    _check_deployment(fields)
    deployment: Deployment = Deployment.objects.create(slug=slug, **fields)
    record(AuditEvent.DEPLOYMENT_CREATED, actor=actor, subject=f"deployment:{deployment.pk}")
    return deployment


def change_deployment(deployment: Deployment, *, actor: str = "system", **changes: Any) -> Deployment:
    """Write the changed ones of `changes`. Raises `SilasError("invalid_deployment")` with the problems by field."""
    _check_deployment(changes)
    before = {name: getattr(deployment, name) for name in changes}
    if changed := _apply(deployment, changes):
        deployment.save(update_fields=changed)
        data: dict[str, Any] = {"fields": changed}
        if plain := [name for name in changed if name in _WRITTEN_OUT]:
            data["before"] = {name: _told(name, before[name]) for name in plain}
            data["after"] = {name: _told(name, changes[name]) for name in plain}
        record(AuditEvent.DEPLOYMENT_CHANGED, actor=actor, subject=f"deployment:{deployment.pk}", data=data)
    return deployment


def _told(name: str, value: Any) -> Any:
    """A setting as the audit log may hold it, which takes no prose: two spans of a day with a plus between them, words
    and fonts by a digest."""
    if name == "opening_hours":
        return {day: "+".join(spans.replace(" ", "").split(",")) for day, spans in value.items()}
    if name == "theme":
        return {part: sha256_hex(said)[:16] if part in ("font", "launcher") else said for part, said in value.items()}
    return value


def deployment_problems(fields: Mapping[str, Any]) -> dict[str, str]:
    """What is wrong with these settings, by field; models are those that can be had here."""
    return rules.deployment_problems(fields, knows_model=is_known)


def _check_deployment(fields: Mapping[str, Any]) -> None:
    if problems := deployment_problems(fields):
        raise SilasError("invalid_deployment", " ".join(problems.values()), extra={"fields": problems})


def _check_zone(zone: str) -> None:
    """A company always has one: its days and schedules begin by it."""
    if problem := timezones.timezone_error(zone) or ("" if zone else "A company needs a time zone."):
        raise SilasError(timezones.CODE, problem, status=422)


def _apply(row: Any, changes: Mapping[str, Any]) -> list[str]:
    """Set what differs; the names of what did."""
    changed = [name for name, value in changes.items() if getattr(row, name) != value]
    for name in changed:
        setattr(row, name, changes[name])
    return changed


def create_api_key(
    name: str, *, scopes: Iterable[KeyScope] = (), actor: str = "system", once: UUID | None = None
) -> NewApiKey:
    """A key for the REST API of the scope's tenant: 256 random bits, kept as a hash only. With `scopes` it may what
    they name and nothing else. `once` marks what was asked: asked again, it is the row that was made, without its key.
    """
    key = f"sk_{secrets.token_urlsafe(32)}"
    new = {"name": name, "prefix": key[:_PREFIX], "hashed": sha256_hex(key), "scopes": sorted(scopes)}
    marked = uuid5(current_tenant_id(), f"api_key:{once}") if once else uuid4()
    row, is_new = ApiKey.objects.get_or_create(pk=marked, defaults=new)
    if not is_new:
        return NewApiKey(row, "")
    record(AuditEvent.API_KEY_CREATED, actor=actor, subject=f"api_key:{row.pk}")
    return NewApiKey(row, key)


def note_api_key_use(row: ApiKey) -> None:
    """The key opened something: written down every few minutes at most, in no audit log."""
    moment = now()
    if row.last_used_at is None or moment - row.last_used_at > _USE_NOTED_EVERY:
        with tenant_scope(row.tenant_id):
            ApiKey.objects.filter(pk=row.pk).update(last_used_at=moment)


def revoke_api_key(row: ApiKey, *, actor: str = "system") -> bool:
    """The key opens nothing from this commit on; whether it opened something before. `NotFound` for a foreign one."""
    mine = ApiKey.objects.filter(pk=row.pk)
    if not mine.exists():
        raise NotFound("API key")
    revoked: bool = mine.filter(revoked_at=None).update(revoked_at=now()) == 1
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
    """A key with which the deployment's site signs who its visitor is; good from this commit on, beside older ones.

    Raises `SilasError("invalid_identity_key")` for a key that does not fit its algorithm, `"identity_key_exists"` 409.
    """
    if problem := rules.identity_key_problem(algorithm, public_key):
        raise SilasError("invalid_identity_key", problem)
    if IdentityKey.objects.filter(deployment=deployment, key_id=key_id).exists():
        raise SilasError("identity_key_exists", f"This deployment has had a key {key_id} already.", status=409)
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
    """What it signed is believed no longer, from this commit on; levels that stand end by themselves. Whether it was
    good before. `NotFound` for a foreign one."""
    mine = IdentityKey.objects.filter(pk=row.pk)
    if not mine.exists():
        raise NotFound("identity key")
    retired: bool = mine.filter(retired_at=None).update(retired_at=now()) == 1
    if retired:
        record(AuditEvent.IDENTITY_KEY_RETIRED, actor=actor, subject=f"identity_key:{row.pk}")
    return retired


def add_message_key(user: User, *, key_id: str, public_key: str, actor: str = "system") -> MessageKey:
    """A key with which a member of the scope's tenant signs messages. Raises `SilasError("not_a_member")`,
    `"invalid_message_key"` and `"message_key_exists"` 409."""
    if queries.role_of(user) is None:
        raise SilasError("not_a_member", "Only members sign messages.")
    if problem := rules.identity_key_problem(IdentityAlgorithm.EDDSA, public_key):
        raise SilasError("invalid_message_key", problem)
    row, is_new = MessageKey.objects.get_or_create(
        key_id=key_id, defaults={"user": user, "public_key": public_key.strip()}
    )
    if not is_new:
        raise SilasError("message_key_exists", f"There has been a key {key_id} already.", status=409)
    record(AuditEvent.MESSAGE_KEY_ADDED, actor=actor, subject=f"message_key:{row.pk}", data={"user": str(user.pk)})
    kept: MessageKey = row
    return kept


def retire_message_key(row: MessageKey, *, actor: str = "system") -> bool:
    """What it signs counts for nothing from this commit on; whether it did before. `NotFound` for a foreign one."""
    mine = MessageKey.objects.filter(pk=row.pk)
    if not mine.exists():
        raise NotFound("message key")
    retired: bool = mine.filter(retired_at=None).update(retired_at=now()) == 1
    if retired:
        record(AuditEvent.MESSAGE_KEY_RETIRED, actor=actor, subject=f"message_key:{row.pk}")
    return retired
