"""How does somebody come in by their company's own login? There, and back with a code.

What the browser was sent away with stays in its session and is good for one way back. The company's page is a link and
no form: a form may lead to pages of ours only (`form-action`).
"""

from __future__ import annotations

import secrets
import time
from dataclasses import asdict
from typing import Any
from urllib.parse import urlsplit

from django.http import HttpRequest, HttpResponseRedirect
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from apps.audit.enums import AuditEvent
from apps.audit.services import record
from apps.console import throttle
from apps.console.coming_in import come_in, is_own_page, next_of
from apps.console.proving import place_of
from apps.tenants import oidc, providers
from apps.tenants.enums import LoginMethod
from apps.tenants.models import LoginProvider
from kernel.errors import SilasError
from kernel.tenancy import tenant_scope

_AWAY, _AWAY_SECONDS = "login_away", 600
_BEGIN_ANEW = SilasError("begin_anew", "That took too long or belongs to something else. Begin again.", status=403)


@never_cache
@require_safe
def company(request: HttpRequest) -> HttpResponseBase:
    """Which company? One without its own login looks like one that there is not."""
    slug = request.GET.get("company", "").strip().lower()
    if not slug:
        return _page(request)
    found = providers.provider_of(slug)
    if found is None:
        return _page(request, problem="There is no login of that company here.", status=404)
    return _page(request, provider=found, host=urlsplit(found.issuer).hostname)


@never_cache
@require_safe
def go(request: HttpRequest, slug: str) -> HttpResponseBase:
    found = providers.provider_of(slug)
    if found is None:
        return _page(request, problem="There is no login of that company here.", status=404)
    if not throttle.may_begin(request.META.get("REMOTE_ADDR", "")):
        return _page(request, problem="Too many attempts. Wait a quarter of an hour.", status=429)
    asked = oidc.Asked.anew()
    try:
        there = oidc.address_of(found.issuer, client_id=found.client_id, back=_back(request, slug), asked=asked)
    except SilasError as refusal:
        return _page(request, problem=refusal.message, status=refusal.status)
    request.session[_AWAY] = {**asdict(asked), "slug": slug, "next": next_of(request), "at": time.time()}
    return HttpResponseRedirect(there)


@never_cache
@require_safe
def back(request: HttpRequest, slug: str) -> HttpResponseBase:
    away: dict[str, Any] = request.session.pop(_AWAY, {})
    found = providers.provider_of(slug)
    if found is None:
        return _page(request, problem="There is no login of that company here.", status=404)
    try:
        asked = _asked(request, away, slug)
        claims = oidc.claims_for(
            found.issuer,
            client_id=found.client_id,
            secret=providers.secret_of(found),
            code=request.GET.get("code", ""),
            back=_back(request, slug),
            asked=asked,
        )
        with tenant_scope(found.tenant_id):
            user = providers.person_of(found, claims)
    except SilasError as refusal:
        _write_down(found, refusal)
        return _page(request, problem=refusal.message, status=refusal.status)
    come_in(request, user, method=LoginMethod.PROVIDER, only_tenant=str(found.tenant_id))
    then = away["next"]
    return redirect(then if is_own_page(request, then) else reverse("console"))


def _asked(request: HttpRequest, away: dict[str, Any], slug: str) -> oidc.Asked:
    """What this browser was sent away with, if it is back from there."""
    said = request.GET.get("state", "")
    fits = away.get("slug") == slug and secrets.compare_digest(said.encode(), away["state"].encode())
    if not fits or time.time() - away["at"] > _AWAY_SECONDS or not request.GET.get("code"):
        raise _BEGIN_ANEW
    return oidc.Asked(state=away["state"], nonce=away["nonce"], verifier=away["verifier"])


def _back(request: HttpRequest, slug: str) -> str:
    return place_of(request)[1] + reverse("console-company-back", args=[slug])


def _write_down(provider: LoginProvider, refusal: SilasError) -> None:
    if refusal is not _BEGIN_ANEW:
        with tenant_scope(provider.tenant_id):
            subject = f"login_provider:{provider.pk}"
            record(AuditEvent.LOGIN_PROVIDER_REFUSED, subject=subject, data={"reason": refusal.code})


def _page(request: HttpRequest, *, status: int = 200, **shown: Any) -> HttpResponseBase:
    return render(request, "console/company.html", {"next": next_of(request), **shown}, status=status)
