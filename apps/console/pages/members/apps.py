"""Apps of third parties: registered, their secret shown once, and revoked. For owners, as API keys are."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django import forms
from django.http.response import HttpResponseBase
from django.shortcuts import redirect
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from apps.console.base import page
from apps.console.members import StaffRequest, staff_view
from apps.tenants.enums import Capability
from apps.tenants.models import Deployment
from apps.tenants.oauth import services
from apps.tenants.oauth.server import MCP_PATH
from apps.tenants.oauth.views import issuer_of
from apps.tenants.rules import APP_SCOPES, SELF_REGISTERED_SCOPES
from kernel.error_codes import ErrorCode
from kernel.errors import SilasError

_SCOPES = [(scope.value, scope.label) for scope in APP_SCOPES]


class AppForm(forms.Form):
    name = forms.CharField(max_length=80)
    redirect_uris = forms.CharField(required=False, max_length=5100)
    scopes = forms.MultipleChoiceField(choices=_SCOPES)

    def refusal(self) -> SilasError:
        return SilasError(ErrorCode.OAUTH_SCOPES_INVALID if "scopes" in self.errors else ErrorCode.INVALID)


class NewAppForm(AppForm):
    confidential = forms.BooleanField(required=False)


def _render(request: StaffRequest, refusal: SilasError | None = None, *args: Any, **more: object) -> HttpResponseBase:
    return page(
        request,
        "console/apps.html",
        at="apps",
        status=refusal.status if refusal else 200,
        refusal=refusal,
        apps=services.list_apps(),
        made=more.get("made"),
        scopes=_SCOPES,
        self_scopes=SELF_REGISTERED_SCOPES,
        issuer=issuer_of(request),
        allows=request.member.tenant.apps_register_themselves,
        deployments=Deployment.objects.order_by("title"),
        mcp_path=MCP_PATH,
    )


@require_safe
@staff_view(Capability.MANAGE_API_KEYS)
def apps(request: StaffRequest) -> HttpResponseBase:
    return _render(request)


@require_http_methods(["GET", "HEAD", "POST"])
@staff_view(Capability.MANAGE_API_KEYS, on_conflict=_render)
def register(request: StaffRequest) -> HttpResponseBase:
    """Register an app. Its secret is only in the answer to this form; reloading shows the list."""
    if request.method != "POST":
        return redirect("console-apps")
    form = NewAppForm(request.POST)
    if not form.is_valid():
        return _render(request, form.refusal())
    try:
        made = services.register_app(
            form.cleaned_data["name"],
            redirect_uris=form.cleaned_data["redirect_uris"].split(),
            scopes=form.cleaned_data["scopes"],
            is_confidential=form.cleaned_data["confidential"],
            actor=request.member.user.actor,
        )
    except SilasError as refusal:
        return _render(request, refusal)
    return _render(request, made=made)


@require_POST
@staff_view(Capability.MANAGE_API_KEYS, on_conflict=_render)
def change(request: StaffRequest, app_id: UUID) -> HttpResponseBase:
    """Change an app's name, redirect addresses and scopes."""
    form = AppForm(request.POST)
    if not form.is_valid():
        return _render(request, form.refusal())
    try:
        services.change_app(
            services.get_app(app_id, lock=True),
            name=form.cleaned_data["name"],
            redirect_uris=form.cleaned_data["redirect_uris"].split(),
            scopes=form.cleaned_data["scopes"],
            actor=request.member.user.actor,
        )
    except SilasError as refusal:
        return _render(request, refusal)
    return redirect("console-apps")


@require_POST
@staff_view(Capability.MANAGE_API_KEYS, on_conflict=_render)
def allow_self_registration(request: StaffRequest) -> HttpResponseBase:
    """Decide whether MCP clients may register themselves."""
    services.allow_self_registration(
        request.member.tenant, allowed=request.POST.get("allowed") == "1", actor=request.member.user.actor
    )
    return redirect("console-apps")


@require_http_methods(["GET", "HEAD", "POST"])
@staff_view(Capability.MANAGE_API_KEYS, on_conflict=_render)
def replace_secret(request: StaffRequest, app_id: UUID) -> HttpResponseBase:
    """Replace an app's secret; the new one is only in the answer to this form."""
    if request.method != "POST":
        return redirect("console-apps")
    return _render(request, made=services.replace_secret(app_id, actor=request.member.user.actor))


@require_POST
@staff_view(Capability.MANAGE_API_KEYS, on_conflict=_render)
def revoke(request: StaffRequest, app_id: UUID) -> HttpResponseBase:
    services.revoke_app(app_id, actor=request.member.user.actor)
    return redirect("console-apps")
