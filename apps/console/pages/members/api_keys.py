"""API keys: created, shown once, rotated and revoked. For owners, because a key can do what owners can."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import UUID

from django import forms
from django.http.response import HttpResponseBase
from django.shortcuts import redirect
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from apps.approvals.enums import ApprovalScope, Risk
from apps.approvals.keys import client_keys
from apps.approvals.queries import client_keys as client_key_rows
from apps.console.base import idempotency_key, page
from apps.console.members import StaffRequest, staff_view
from apps.tenants import queries, services
from apps.tenants.enums import Capability, KeyScope
from kernel.clock import now
from kernel.error_codes import ErrorCode
from kernel.errors import SilasError
from kernel.language import gettext_lazy as _

LIFETIMES = ((0, _("Never")), (30, _("In 30 days")), (90, _("In 90 days")), (365, _("In a year")))
OVERLAPS = ((0, _("At once")), (1, _("In 1 hour")), (24, _("In 1 day")), (168, _("In 7 days")))


class NewKeyForm(forms.Form):
    name = forms.CharField(max_length=80)
    scopes = forms.MultipleChoiceField(choices=KeyScope.choices, required=False)
    days = forms.TypedChoiceField(choices=LIFETIMES, coerce=int, required=False)

    def clean_name(self) -> str:
        return " ".join(str(self.cleaned_data["name"]).split())


class RotationForm(forms.Form):
    hours = forms.TypedChoiceField(choices=OVERLAPS, coerce=int)


def _render(request: StaffRequest, refusal: SilasError | None = None, *args: Any, **more: Any) -> HttpResponseBase:
    return page(
        request,
        "console/api_keys.html",
        at="api-keys",
        status=refusal.status if refusal else 200,
        refusal=refusal,
        keys=queries.list_api_keys(),
        client_keys=client_key_rows(),
        kinds=[(scope.value, label) for scope, label in KINDS.items()],
        risks=Risk.choices,
        made=more.get("made"),
        scopes=KeyScope.choices,
        lifetimes=LIFETIMES,
        overlaps=OVERLAPS,
    )


@require_safe
@staff_view(Capability.MANAGE_API_KEYS)
def api_keys(request: StaffRequest) -> HttpResponseBase:
    return _render(request)


@require_http_methods(["GET", "HEAD", "POST"])
@staff_view(Capability.MANAGE_API_KEYS, on_conflict=_render)
def make(request: StaffRequest) -> HttpResponseBase:
    """Create a key. The key is only in the answer to this form; reloading shows the list."""
    if request.method != "POST":
        return redirect("console-api-keys")
    form = NewKeyForm(request.POST)
    if not form.is_valid():
        raise SilasError(ErrorCode.NO_NAME if "name" in form.errors else ErrorCode.INVALID)
    days = form.cleaned_data["days"]
    created = services.create_api_key(
        form.cleaned_data["name"],
        scopes={KeyScope(scope) for scope in form.cleaned_data["scopes"]},
        expires_at=now() + timedelta(days=days) if days else None,
        actor=request.member.user.actor,
        once=idempotency_key(request),
    )
    return _render(request, made=created) if created.key else redirect("console-api-keys")


@require_http_methods(["GET", "HEAD", "POST"])
@staff_view(Capability.MANAGE_API_KEYS, on_conflict=_render)
def rotate(request: StaffRequest, key_id: UUID) -> HttpResponseBase:
    """Replace a key's secret; the new one is only in the answer to this form."""
    if request.method != "POST":
        return redirect("console-api-keys")
    form = RotationForm(request.POST)
    if not form.is_valid():
        raise SilasError(ErrorCode.INVALID)
    overlap = timedelta(hours=form.cleaned_data["hours"])
    rotated = services.rotate_api_key(queries.get_api_key(key_id), overlap=overlap, actor=request.member.user.actor)
    return _render(request, made=rotated)


KINDS = {
    ApprovalScope.FULL_PLAN: _("Tasks"),
    ApprovalScope.SINGLE_STEP: _("Single steps of a task"),
    ApprovalScope.BUDGET: _("Budgets of tasks"),
    ApprovalScope.CONNECTION_ACT: _("Batches"),
    ApprovalScope.SKILL_INSTALL: _("Skills"),
    ApprovalScope.CONNECTION_MANAGE: _("Connections"),
    ApprovalScope.AUTONOMY_THRESHOLD: _("Permissions of automations"),
    ApprovalScope.STANDING: _("Standing approvals"),
}


class ClientKeyForm(forms.Form):
    public_key = forms.CharField(max_length=80)
    kinds = forms.MultipleChoiceField(choices=ApprovalScope.choices)
    max_risk = forms.ChoiceField(choices=Risk.choices)


@require_POST
@staff_view(Capability.MANAGE_API_KEYS, on_conflict=_render)
def add_client_key(request: StaffRequest, key_id: UUID) -> HttpResponseBase:
    """Register a signing key with which the program of this API key decides cards on the member's behalf."""
    form = ClientKeyForm(request.POST)
    if not form.is_valid():
        raise SilasError(ErrorCode.CLIENT_KEY_INVALID)
    client_keys.register(
        request.member.user,
        queries.get_api_key(key_id),
        public_key=form.cleaned_data["public_key"],
        scopes=[ApprovalScope(kind) for kind in form.cleaned_data["kinds"]],
        max_risk=Risk(form.cleaned_data["max_risk"]),
    )
    return redirect("console-api-keys")


@require_POST
@staff_view(Capability.MANAGE_API_KEYS, on_conflict=_render)
def revoke_client_key(request: StaffRequest, key_id: str) -> HttpResponseBase:
    client_keys.revoke(key_id, actor=request.member.user.actor)
    return redirect("console-api-keys")


@require_POST
@staff_view(Capability.MANAGE_API_KEYS, on_conflict=_render)
def revoke(request: StaffRequest, key_id: UUID) -> HttpResponseBase:
    services.revoke_api_key(queries.get_api_key(key_id), actor=request.member.user.actor)
    return redirect("console-api-keys")
