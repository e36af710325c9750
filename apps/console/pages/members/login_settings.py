"""Login settings: the second-factor requirement and single sign-on. For owners."""

from __future__ import annotations

import re

from django.http.response import HttpResponseBase
from django.shortcuts import redirect
from django.urls import reverse
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_POST, require_safe

from apps.console.base import page
from apps.console.members import StaffRequest, staff_view
from apps.console.pages.login.reauthentication import passkey_origin
from apps.tenants import members, providers
from apps.tenants.enums import Capability, Role
from kernel.errors import SilasError


def _render(request: StaffRequest, refusal: SilasError | None = None, *_: object) -> HttpResponseBase:
    provider, origin, slug = providers.provider_here(), passkey_origin(request)[1], request.member.tenant.slug
    typed = request.POST if refusal else {}
    kept = (provider.issuer, provider.client_id, ", ".join(provider.domains)) if provider else ("", "", "")
    return page(
        request,
        "console/member_logins.html",
        at="members",
        status=refusal.status if refusal else 200,
        refusal=refusal,
        required=request.member.tenant.second_factor_required,
        without=[member for member in members.list_members() if not member.__dict__["has_factor"]],
        provider=provider,
        issuer=typed.get("issuer", kept[0]),
        client_id=typed.get("client_id", kept[1]),
        domains=typed.get("domains", kept[2]),
        default_role=typed.get("default_role") or (provider.default_role if provider else Role.VIEWER),
        roles=[role for role in Role if role != Role.OWNER],
        back=origin + reverse("console-company-back", args=[slug]),
        login_address=f"{origin}{reverse('console-company')}?company={slug}",
    )


@require_safe
@staff_view(Capability.MANAGE_LOGIN)
def member_logins(request: StaffRequest) -> HttpResponseBase:
    return _render(request)


@require_POST
@staff_view(Capability.MANAGE_LOGIN, on_conflict=_render)
def require_second_factor(request: StaffRequest) -> HttpResponseBase:
    required = request.POST.get("required") == "1"
    providers.require_second_factor(request.member.tenant, required=required, actor=f"user:{request.member.user.pk}")
    return redirect("console-member-logins")


@require_POST
@sensitive_post_parameters("secret")
@staff_view(Capability.MANAGE_LOGIN, on_conflict=_render)
def save_provider(request: StaffRequest) -> HttpResponseBase:
    sent = request.POST
    try:
        providers.save_provider(
            issuer=sent.get("issuer", "").replace("\0", ""),
            client_id=sent.get("client_id", "").replace("\0", ""),
            secret=sent.get("secret", "").strip(),
            domains=re.split(r"[\s,;]+", sent.get("domains", "")),
            default_role=sent.get("default_role", ""),
            enabled=sent.get("enabled") == "on",
            actor=f"user:{request.member.user.pk}",
        )
    except SilasError as refusal:
        raise SilasError(refusal.code, refusal.message, status=409) from refusal
    return redirect("console-member-logins")
