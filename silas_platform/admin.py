"""Who administers what? Superusers see the platform (audited); a tenant's owner sees their own tenant."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import wraps
from typing import Any

from django.contrib.admin import AdminSite
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase

from apps.tenants.enums import Role
from apps.tenants.queries import membership_of
from kernel.tenancy import platform_scope, tenant_scope


class SilasAdminSite(AdminSite):
    site_title = "Silas administration"
    site_header = "Silas administration"
    index_title = "Policy, gates, levels and budgets"

    def has_permission(self, request: HttpRequest) -> bool:
        return bool(request.user.is_active and (request.user.is_superuser or _own_tenant(request)))

    def admin_view(self, view: Callable[..., HttpResponseBase], cacheable: bool = False) -> Callable[..., HttpResponseBase]:
        """Every admin page runs in one scope: the platform's for a superuser, else the owner's own tenant."""
        guarded = super().admin_view(view, cacheable)

        @wraps(guarded)
        def scoped(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
            scope = _scope(request)
            if scope is None:
                return guarded(request, *args, **kwargs)
            with scope:
                response = guarded(request, *args, **kwargs)
                if isinstance(response, HttpResponse) and hasattr(response, "render"):
                    response.render()
                return response

        return scoped


def _own_tenant(request: HttpRequest) -> Any:
    membership = membership_of(request.user, roles=(Role.OWNER,))
    return membership.tenant_id if membership else None


def _scope(request: HttpRequest) -> AbstractContextManager[Any] | None:
    if not request.user.is_authenticated:
        return None
    if request.user.is_superuser:
        return platform_scope(f"admin {request.method} {request.resolver_match.url_name if request.resolver_match else ''}")
    tenant_id = _own_tenant(request)
    return tenant_scope(tenant_id) if tenant_id else None
