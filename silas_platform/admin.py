"""The admin site: superusers see the whole platform (audited), an owner sees their own tenant."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import wraps
from typing import Any
from uuid import UUID

from django.contrib.admin import AdminSite
from django.contrib.auth.views import redirect_to_login
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.urls import path, reverse
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_POST

from apps.console.members import refused
from apps.tenants import access
from apps.tenants.enums import Capability
from apps.tenants.rules import TENANT_IN_SESSION, roles_with
from kernel.error_codes import ErrorCode
from kernel.errors import SilasError
from kernel.tenancy import platform_scope, tenant_scope
from silas_platform import gate_trial

_NOT_AN_OWNER = SilasError(ErrorCode.OWNERS_ONLY, gettext_lazy("Only an owner can administer."))
_ORDER = ("tenants", "gates", "guard", "memory", "skills")


class SilasAdminSite(AdminSite):
    site_title = gettext_lazy("Silas administration")
    site_header = gettext_lazy("Silas administration")
    index_title = gettext_lazy("Policy, gates, levels and budgets")
    site_url = "/console/"

    def has_permission(self, request: HttpRequest) -> bool:
        return bool(request.user.is_active and (request.user.is_superuser or _own_tenant(request)))

    def login(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        """Redirect to the console's login, which limits attempts."""
        return redirect_to_login(request.GET.get("next") or reverse("admin:index"), reverse("console-login"))

    def get_app_list(self, request: HttpRequest, app_label: str | None = None) -> list[object]:
        """Sort apps with settings before those that are read-only."""
        app_list = super().get_app_list(request, app_label)
        return sorted(app_list, key=lambda app: _ORDER.index(app["app_label"]) if app["app_label"] in _ORDER else 99)

    def get_urls(self) -> list[Any]:
        trial = path("gates/gate/<uuid:gate_id>/try/", require_POST(self.try_gate), name="gates_gate_try")
        return [trial, *super().get_urls()]

    def try_gate(self, request: HttpRequest, gate_id: UUID) -> HttpResponse:
        """Backtest a gate. The only admin page outside a scope, because evaluating recorded messages takes long."""
        if not request.user.is_authenticated:
            return self.login(request)
        if not self.has_permission(request):
            return refused(request, _NOT_AN_OWNER)
        return gate_trial.try_newest(request, gate_id, site=self, own_tenant=_own_tenant(request))

    def admin_view(self, view: Callable[..., HttpResponseBase], cacheable: bool = False) -> Any:
        """Run every admin page in one scope: the platform's for a superuser, else the owner's own tenant."""
        guarded = super().admin_view(view, cacheable)

        @wraps(guarded)
        def scoped(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
            if request.user.is_authenticated and not self.has_permission(request):
                return refused(request, _NOT_AN_OWNER)
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
    """The tenant that the user owns, looked up once for each request and before its scope is open.

    Of several, the one that is open in the console, else the oldest.
    """
    cache: dict[str, Any] = request.__dict__
    if "owned_tenant" not in cache:
        cache["owned_tenant"] = _choose_tenant(request) if request.user.is_authenticated else None
    return cache["owned_tenant"]


def _choose_tenant(request: HttpRequest) -> Any:
    assert request.user.is_authenticated
    session, administers = request.session, roles_with(Capability.ADMINISTER)
    memberships = [row for row in access.memberships_in(session, request.user) if row.role in administers]
    owned = [row.tenant_id for row in memberships if not access.lacks_second_factor(session, request.user, row.tenant)]
    opened = request.session.get(TENANT_IN_SESSION, "")
    return next((tenant_id for tenant_id in owned if str(tenant_id) == opened), None) or next(iter(owned), None)


def _scope(request: HttpRequest) -> AbstractContextManager[Any] | None:
    if not request.user.is_authenticated:
        return None
    if request.user.is_superuser:
        return platform_scope(
            f"admin {request.method} {request.resolver_match.url_name if request.resolver_match else ''}"
        )
    tenant_id = _own_tenant(request)
    return tenant_scope(tenant_id) if tenant_id else None
