"""Tenants, people and deployments for tests: every one new, so that tests cannot meet."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

from apps.bus.models import QueueMessage
from apps.tenants.models import Deployment, Membership, Tenant, User
from kernel.tenancy import tenant_scope


def make_tenant(**fields: Any) -> Tenant:
    """A tenant without the standing work that each begins with: a test schedules what it is about."""
    slug = f"t-{uuid4().hex[:12]}"
    tenant = Tenant.objects.create(**{"slug": slug, "name": slug.title(), **fields})
    with tenant_scope(tenant):
        QueueMessage.objects.all().delete()
    return tenant


def make_user(**fields: Any) -> User:
    return User.objects.create_user(f"u-{uuid4().hex[:12]}@example.test", "a-long-password", **fields)


def make_member(tenant: Tenant, role: str) -> User:
    user = make_user()
    with tenant_scope(tenant):
        Membership.objects.create(user=user, role=role)
    return user


def make_deployment(tenant: Tenant, **fields: Any) -> Deployment:
    key = f"k-{uuid4().hex[:12]}"
    with tenant_scope(tenant):
        row: Deployment = Deployment.objects.create(
            **{"slug": key, "title": "Desk", "public_key": key, "allowed_origins": ["http://site.test"], **fields}
        )
    return row
