"""Backtest a gate from the admin, outside the scope that every other admin page runs in.

The gate's tenant is looked up first: an owner cannot find another tenant's gate, and a superuser's access across
tenants is audited.
"""

from __future__ import annotations

from uuid import UUID

from django.contrib.admin import AdminSite
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.utils.cache import add_never_cache_headers
from django.utils.translation import gettext as _

from apps.gates.backtest.runs import BacktestReport, backtest_version
from apps.gates.models import Gate
from kernel.errors import NotFound
from kernel.ids import require_id
from kernel.tenancy import platform_scope, tenant_scope


def try_newest(request: HttpRequest, gate_id: UUID, *, site: AdminSite, own_tenant: object) -> HttpResponse:
    """Try the newest version of a gate on recorded messages, and show what would change."""
    tenant_id, number = _where(request, gate_id, own_tenant)
    done = backtest_version(
        tenant_id,
        gate_id,
        number,
        actor=f"user:{request.user.pk}",
        deployment_id=_deployment(request),
        ask_models="_trial_models" in request.POST,
    )
    title = _("%(gate)s, version %(number)s: tried") % {"gate": done.gate.name, "number": number}
    shown = {**site.each_context(request), "done": done, "title": title}
    response = TemplateResponse(request, "admin/gates/gate/tried.html", {**shown, "counts": _counts(done)})
    add_never_cache_headers(response)
    return response.render()


def _where(request: HttpRequest, gate_id: UUID, own_tenant: object) -> tuple[UUID, int]:
    if getattr(request.user, "is_superuser", False):
        with platform_scope("admin POST gates_gate_try"):
            found: Gate | None = Gate.objects.filter(pk=gate_id).first()
    else:
        with tenant_scope(own_tenant):
            found = Gate.objects.filter(pk=gate_id).first()
    if found is None:
        raise NotFound()
    return found.tenant_id, found.newest


def _deployment(request: HttpRequest) -> UUID | None:
    chosen = request.POST.get("_trial_deployment", "")
    return require_id(chosen) if chosen else None


def _counts(done: BacktestReport) -> list[tuple[str, int, int]]:
    before, after = done.before or {}, done.after or {}
    words = {"continue": _("Passes"), "block": _("Blocked"), "require_approval": _("A person decides")}
    return [(said, before.get(action, 0), after.get(action, 0)) for action, said in words.items()]
