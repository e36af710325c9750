"""How do a tenant, its people, its deployments and its API keys come to be and change?

Every write ends in the tenant's audit log. A new account has no password until one is set by a link that works once;
an API key is shown once and kept as a hash. Called by commands, the administration and the demo.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.contrib.auth.tokens import default_token_generator
from django.core.exceptions import ValidationError
from django.core.validators import validate_email
from django.db import transaction
from django.urls import reverse
from django.utils.encoding import force_bytes
from django.utils.http import urlsafe_base64_encode

from apps.audit.enums import AuditEvent
from apps.audit.services import record
from apps.tenants import rules
from apps.tenants.enums import Role
from apps.tenants.models import ApiKey, Deployment, Membership, Tenant, User
from kernel.canonical import sha256_hex
from kernel.clock import now
from kernel.errors import NotFound, SilasError
from kernel.llm.models import is_known
from kernel.tenancy import tenant_scope

_PREFIX = 9


@dataclass(frozen=True)
class NewMember:
    """`welcome` is the path of the one-time link of an account made just now; empty for one that was there."""

    membership: Membership
    welcome: str = ""


@dataclass(frozen=True)
class NewApiKey:
    """The row, and the key itself: this is the only time anybody sees it."""

    row: ApiKey
    key: str


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
    """A tenant with its first owner. Raises `SilasError("tenant_exists")` 409."""
    with transaction.atomic(savepoint=False):
        tenant, is_new = Tenant.objects.get_or_create(slug=slug, defaults={"name": name, "timezone": timezone})
        if not is_new:
            raise SilasError("tenant_exists", f"There is a tenant {slug} already.", status=409)
        with tenant_scope(tenant):
            record(AuditEvent.TENANT_CREATED, actor=actor, subject=f"tenant:{tenant.pk}")
            return add_member(owner_email, role=Role.OWNER, full_name=owner_name, password=owner_password, actor=actor)


def change_tenant(tenant: Tenant, *, actor: str = "system", **changes: str) -> Tenant:
    """Write the changed ones of `changes` (name, timezone)."""
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
    _check_email(email)
    user, is_new = _account(email, full_name=full_name, password=password)
    membership, joined = Membership.objects.get_or_create(user=user, defaults={"role": role})
    if not joined:
        raise SilasError("member_exists", "This person is a member already.", status=409)
    record(AuditEvent.MEMBER_ADDED, actor=actor, subject=f"user:{user.pk}", data={"role": str(role)})
    return NewMember(membership, welcome_path(user) if is_new and password is None else "")


def change_role(membership: Membership, role: Role, *, actor: str = "system") -> None:
    if Membership.objects.filter(pk=membership.pk).exclude(role=role).update(role=role):
        data = {"role": str(role)}
        record(AuditEvent.ROLE_CHANGED, actor=actor, subject=f"user:{membership.user_id}", data=data)


def _check_email(email: str) -> None:
    try:
        validate_email(email)
    except ValidationError:
        raise SilasError("invalid_email", f"{email[:80]!r} is not an e-mail address.") from None


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
    if changed := _apply(deployment, changes):
        deployment.save(update_fields=changed)
        data = {"fields": changed}
        record(AuditEvent.DEPLOYMENT_CHANGED, actor=actor, subject=f"deployment:{deployment.pk}", data=data)
    return deployment


def deployment_problems(fields: Mapping[str, Any]) -> dict[str, str]:
    """What is wrong with these settings, by field; models are those that can be had here."""
    return rules.deployment_problems(fields, knows_model=is_known)


def _check_deployment(fields: Mapping[str, Any]) -> None:
    if problems := deployment_problems(fields):
        raise SilasError("invalid_deployment", " ".join(problems.values()), extra={"fields": problems})


def _apply(row: Any, changes: Mapping[str, Any]) -> list[str]:
    """Set what differs; the names of what did."""
    changed = [name for name, value in changes.items() if getattr(row, name) != value]
    for name in changed:
        setattr(row, name, changes[name])
    return changed


def create_api_key(name: str, *, actor: str = "system") -> NewApiKey:
    """A key for the REST API of the scope's tenant: 256 random bits, kept as a hash only."""
    key = f"sk_{secrets.token_urlsafe(32)}"
    row: ApiKey = ApiKey.objects.create(name=name, prefix=key[:_PREFIX], hashed=sha256_hex(key))
    record(AuditEvent.API_KEY_CREATED, actor=actor, subject=f"api_key:{row.pk}")
    return NewApiKey(row, key)


def revoke_api_key(row: ApiKey, *, actor: str = "system") -> bool:
    """The key opens nothing from this commit on; whether it opened something before. `NotFound` for a foreign one."""
    mine = ApiKey.objects.filter(pk=row.pk)
    if not mine.exists():
        raise NotFound("API key")
    revoked: bool = mine.filter(revoked_at=None).update(revoked_at=now()) == 1
    if revoked:
        record(AuditEvent.API_KEY_REVOKED, actor=actor, subject=f"api_key:{row.pk}")
    return revoked
