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

# The groups of the index, in the words of the console: its Settings, then its pages. A model is in the group that names
# it, else in that of its app. A test holds that no model is without one.
GROUPS: tuple[tuple[object, tuple[str, ...]], ...] = (
    (
        gettext_lazy("Workspace"),
        ("tenants.tenant", "tenants.user", "tenants.membership", "tenants.letter", "inbox", "copilot"),
    ),
    (
        gettext_lazy("Chatbots"),
        (
            "tenants.deployment",
            "silas_sessions.visitoroffers",
            "silas_sessions.formquestion",
            "silas_sessions.proactivemessage",
            "persona",
            "messengers",
            "releases",
            "simulations",
        ),
    ),
    (
        gettext_lazy("Policy"),
        (
            "gates",
            "silas_sessions.accesslevel",
            "approvals.approvalpolicy",
            "messengers.cardpolicy",
            "work.reviewpolicy",
            "work.thresholdchange",
            "guard.budget",
            "guard.spendingpolicy",
            "guard.modelprice",
            "guard.platformbudget",
            "guard.systemcontrol",
            "tenants.visitorlimits",
        ),
    ),
    (gettext_lazy("Abilities"), ("skills", "connections", "toolservers")),
    (gettext_lazy("Automation"), ("autonomy",)),
    (
        gettext_lazy("Security"),
        ("tenants.retention", "approvals.approverkey", "approvals.passkey", "messengers.approveraccount"),
    ),
    (
        gettext_lazy("Developers"),
        ("tenants.apikey", "tenants.identitykey", "tenants.messagekey", "approvals.clientkey", "events"),
    ),
    (gettext_lazy("Conversations"), ("silas_sessions",)),
    (gettext_lazy("Contacts"), ("contacts", "imports")),
    (gettext_lazy("Review"), ("approvals",)),
    (gettext_lazy("Work"), ("work",)),
    (gettext_lazy("Knowledge"), ("knowledge", "memory.collection", "memory.document")),
    (gettext_lazy("Memory"), ("memory",)),
    (gettext_lazy("Activity"), ("audit", "guard")),
)


def group_of(label: str) -> int | None:
    """The place in `GROUPS` of the model with this label in small letters; None if it has none."""
    for wanted in (label, label.partition(".")[0]):
        for place, (_title, names) in enumerate(GROUPS):
            if wanted in names:
                return place
    return None


# The page of the console about a row: the name of its address, and the attribute that it takes.
_CONSOLE = {
    "approvals.approvalpolicy": ("console-approval-policy", "pk"),
    "approvals.card": ("console-card", "pk"),
    "approvals.cardtiming": ("console-card-timings", ""),
    "audit.auditentry": ("console-entry", "seq"),
    "autonomy.autonomoussession": ("console-run", "pk"),
    "autonomy.autonomysettings": ("console-autonomy", ""),
    "autonomy.task": ("console-task", "pk"),
    "connections.connection": ("console-connection", "pk"),
    "contacts.contact": ("console-contact", "pk"),
    "gates.gate": ("console-gate", "pk"),
    "guard.budget": ("console-spending", ""),
    "guard.modelprice": ("console-prices", ""),
    "guard.spendingpolicy": ("console-spending-policy", ""),
    "imports.importrun": ("console-import", "pk"),
    "inbox.inboxrule": ("console-inbox-rule", "pk"),
    "inbox.slapolicy": ("console-sla-policy", "pk"),
    "inbox.team": ("console-team", "pk"),
    "knowledge.gaptopic": ("console-gap", "pk"),
    "knowledge.knowledgesource": ("console-sources", ""),
    "memory.collection": ("console-collection", "pk"),
    "memory.document": ("console-document", "pk"),
    "memory.memoryitem": ("console-memory", "pk"),
    "messengers.channel": ("console-channel", "pk"),
    "silas_sessions.accesslevel": ("console-access-level", "pk"),
    "silas_sessions.chatsession": ("console-conversation", "pk"),
    "simulations.simulationrun": ("console-simulation", "pk"),
    "tenants.apikey": ("console-api-keys", ""),
    "tenants.deployment": ("console-studio", "pk"),
    "tenants.membership": ("console-members", ""),
    "tenants.retention": ("console-retention", ""),
    "tenants.visitorlimits": ("console-visitor-limits", ""),
    "toolservers.toolserver": ("console-tool-server", "pk"),
    "toolservers.websearch": ("console-tool-servers", ""),
    "work.workitem": ("console-work-item", "pk"),
}


class SilasAdminSite(AdminSite):
    site_title = gettext_lazy("Silas administration")
    site_header = gettext_lazy("Silas administration")
    index_title = gettext_lazy("Policy, gates, levels and budgets")
    site_url = "/console/"

    def has_permission(self, request: HttpRequest) -> bool:
        return bool(request.user.is_active and (request.user.is_superuser or _own_tenant(request)))

    def login(self, request: HttpRequest, extra_context: dict[str, object] | None = None) -> HttpResponse:
        """Redirect to the console's login, which limits attempts."""
        return redirect_to_login(request.GET.get("next") or reverse("admin:index"), reverse("console-login"))

    def get_app_list(self, request: HttpRequest, app_label: str | None = None) -> list[object]:
        """Group the models by task; the page of one app lists its own models as Django does."""
        app_list = super().get_app_list(request, app_label)
        if app_label is not None:
            return app_list
        grouped: dict[int, list[Any]] = {}
        for model in (model for app in app_list for model in app["models"]):
            place = group_of(model["model"]._meta.label_lower)
            grouped.setdefault(len(GROUPS) if place is None else place, []).append(model)
        return [
            {
                "name": GROUPS[place][0] if place < len(GROUPS) else gettext_lazy("Other"),
                "app_label": f"group-{place}",
                "app_url": f"{reverse('admin:index')}#group-{place}",
                "has_module_perms": True,
                "models": sorted(models, key=lambda model: str(model["name"]).casefold()),
            }
            for place, models in sorted(grouped.items())
        ]

    def console_address(self, row: Any) -> str | None:
        """The console's page about the same thing, if it has one."""
        name, attribute = _CONSOLE.get(row._meta.label_lower, ("", ""))
        return reverse(name, args=[getattr(row, attribute)] if attribute else []) if name else None

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
        def scoped(request: HttpRequest, *args: object, **kwargs: object) -> HttpResponseBase:
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
    cache: dict[str, object] = request.__dict__
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


def _scope(request: HttpRequest) -> AbstractContextManager[object] | None:
    if not request.user.is_authenticated:
        return None
    if request.user.is_superuser:
        return platform_scope(
            f"admin {request.method} {request.resolver_match.url_name if request.resolver_match else ''}"
        )
    tenant_id = _own_tenant(request)
    return tenant_scope(tenant_id) if tenant_id else None
