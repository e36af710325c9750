"""Permissions of owners in the administration: what each page allows on rows of their own tenant, nothing else.
Superusers have Django's own permissions.
"""

from __future__ import annotations

from django.apps import apps
from django.contrib.auth.backends import BaseBackend
from django.contrib.auth.models import AnonymousUser

from apps.tenants.enums import Capability
from apps.tenants.models import User
from apps.tenants.queries import role_of
from apps.tenants.rules import roles_with
from kernel.tenancy import ScopeError
from kernel.tenancy.models import TenantManager
from kernel.tenancy.scope import current_tenant_id


class OwnerBackend(BaseBackend):
    """Grants permissions inside an owner's own tenant scope only; authenticates no one."""

    def has_perm(self, user_obj: User | AnonymousUser, perm: str, obj: object = None) -> bool:
        label, _, codename = perm.partition(".")
        return _is_tenant_row(label, codename.partition("_")[2]) and _owns_open_tenant(user_obj)

    def has_module_perms(self, user_obj: User | AnonymousUser, app_label: str) -> bool:
        models = apps.get_app_config(app_label).get_models()
        return any(isinstance(model._default_manager, TenantManager) for model in models) and _owns_open_tenant(
            user_obj
        )


def _is_tenant_row(label: str, name: str) -> bool:
    try:
        model = apps.get_model(label, name)
    except (LookupError, ValueError):
        return False
    return isinstance(model._default_manager, TenantManager)


def _owns_open_tenant(user: User | AnonymousUser) -> bool:
    """Cached on the user object per tenant, because the admin asks many times a page."""
    try:
        tenant_id = current_tenant_id()
    except ScopeError:
        return False
    known: dict[object, bool] = user.__dict__.setdefault("_owned_tenants", {})
    if tenant_id not in known:
        known[tenant_id] = (
            isinstance(user, User) and user.is_active and role_of(user) in roles_with(Capability.ADMINISTER)
        )
    return known[tenant_id]
