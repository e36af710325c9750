"""How do a tenant and its people come to be? A new account has no password until one is set by a one-time link."""

from __future__ import annotations

from django.contrib.auth.tokens import default_token_generator
from django.db import transaction
from django.urls import reverse
from django.utils.encoding import force_bytes
from django.utils.http import urlsafe_base64_encode

from apps.audit.enums import AuditEvent
from apps.audit.services import record
from apps.tenants.enums import Role
from apps.tenants.models import Membership, Tenant, User
from kernel.errors import SilasError
from kernel.tenancy import tenant_scope


def create_tenant(slug: str, *, name: str, owner_email: str) -> User:
    """A tenant with its first owner; returns the owner. Raises `SilasError("tenant_exists")` 409."""
    with transaction.atomic(savepoint=False):
        tenant, is_new = Tenant.objects.get_or_create(slug=slug, defaults={"name": name})
        if not is_new:
            raise SilasError("tenant_exists", f"There is a tenant {slug} already.", status=409)
        with tenant_scope(tenant):
            record(AuditEvent.TENANT_CREATED, subject=f"tenant:{tenant.pk}")
            user, _ = account(owner_email)
            Membership.objects.create(user=user, role=Role.OWNER)
            return user


def account(email: str) -> tuple[User, bool]:
    """The account of this e-mail address, whatever its case, and whether it was made just now."""
    found = User.objects.filter(email__iexact=email).first()
    return (found, False) if found else (User.objects.create_user(email), True)


def welcome_path(user: User) -> str:
    """The address at which `user` sets a password, once, within three days."""
    who = urlsafe_base64_encode(force_bytes(user.pk))
    return reverse("console-welcome", args=[who, default_token_generator.make_token(user)])
