"""Log in with the company's own login (OpenID Connect): to the provider, and back with a code.

The state of the request stays in the session and is valid for one return. The company's page has a link instead of a
form, because forms may lead only to our own pages (`form-action`).
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
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from apps.audit.enums import AuditEvent
from apps.audit.services import record
from apps.console.pages.login import ratelimit
from apps.console.pages.login.flow import is_own_page, log_in_user, next_address
from apps.console.pages.login.reauthentication import passkey_origin
from apps.tenants import oidc, providers
from apps.tenants.enums import LoginMethod
from kernel.error_codes import ErrorCode
from kernel.errors import SilasError
from kernel.ratelimit.addresses import address_of
from kernel.tenancy import tenant_scope

_REQUEST, _REQUEST_SECONDS = "login_away", 600
_START_OVER = gettext_lazy("This login attempt expired or is not valid. Start over.")


@never_cache
@require_safe
def company(request: HttpRequest) -> HttpResponseBase:
    """Ask for the company. A company without its own login and an unknown one give the same answer."""
    slug = request.GET.get("company", "").strip().lower()
    if not slug:
        return _page(request)
    provider = providers.provider_of(slug)
    if provider is None:
        return _page(request, problem=_("No company login found with this name."), status=404)
    return _page(request, provider=provider, host=urlsplit(provider.issuer).hostname)


@never_cache
@require_safe
def go(request: HttpRequest, slug: str) -> HttpResponseBase:
    provider = providers.provider_of(slug)
    if provider is None:
        return _page(request, problem=_("No company login found with this name."), status=404)
    if not ratelimit.may_begin(address_of(request)):
        return _page(request, problem=_("Too many attempts. Wait 15 minutes."), status=429)
    oidc_request = oidc.Asked.anew()
    try:
        there = oidc.address_of(
            provider.issuer, client_id=provider.client_id, back=_back(request, slug), asked=oidc_request
        )
    except SilasError as refusal:
        return _page(request, problem=refusal.message, status=refusal.status)
    request.session[_REQUEST] = {**asdict(oidc_request), "slug": slug, "next": next_address(request), "at": time.time()}
    return HttpResponseRedirect(there)


@never_cache
@require_safe
def back(request: HttpRequest, slug: str) -> HttpResponseBase:
    away: dict[str, Any] = request.session.pop(_REQUEST, {})
    provider = providers.provider_of(slug)
    if provider is None:
        return _page(request, problem=_("No company login found with this name."), status=404)
    try:
        oidc_request = _own_request(request, away, slug)
        claims = oidc.claims_for(
            provider.issuer,
            client_id=provider.client_id,
            secret=providers.secret_of(provider),
            code=request.GET.get("code", ""),
            back=_back(request, slug),
            asked=oidc_request,
        )
        with tenant_scope(provider.tenant_id):
            user = providers.person_of(provider, claims)
    except SilasError as refusal:
        if refusal.code != ErrorCode.BEGIN_ANEW:
            with tenant_scope(provider.tenant_id):
                subject = f"login_provider:{provider.pk}"
                record(AuditEvent.LOGIN_PROVIDER_REFUSED, subject=subject, data={"reason": refusal.code})
        return _page(request, problem=refusal.message, status=refusal.status)
    log_in_user(request, user, method=LoginMethod.PROVIDER, only_tenant=str(provider.tenant_id))
    then = away["next"]
    return redirect(then if is_own_page(request, then) else reverse("console"))


def _own_request(request: HttpRequest, away: dict[str, Any], slug: str) -> oidc.Asked:
    """Return the request with which this browser was sent away, if this is its return."""
    state = request.GET.get("state", "")
    fits = away.get("slug") == slug and secrets.compare_digest(state.encode(), away["state"].encode())
    if not fits or time.time() - away["at"] > _REQUEST_SECONDS or not request.GET.get("code"):
        raise SilasError(ErrorCode.BEGIN_ANEW, _START_OVER)
    return oidc.Asked(state=away["state"], nonce=away["nonce"], verifier=away["verifier"])


def _back(request: HttpRequest, slug: str) -> str:
    return passkey_origin(request)[1] + reverse("console-company-back", args=[slug])


def _page(request: HttpRequest, *, status: int = 200, **context: object) -> HttpResponseBase:
    return render(request, "console/company.html", {"next": next_address(request), **context}, status=status)
