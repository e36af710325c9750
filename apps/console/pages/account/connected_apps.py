"""Apps that act for a member: the page on which the member consents, the list of what they allowed, and its end.

Consent is asked each time. Only members of the app's company are redirected, and nothing is sent to an
address that is not registered for the app.
"""

from __future__ import annotations

from urllib.parse import urlsplit
from uuid import UUID

from django.contrib.auth.views import redirect_to_login
from django.http import HttpRequest, HttpResponseRedirect
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.cache import patch_cache_control
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from apps.console.base import page
from apps.console.members import StaffRequest, refused, staff_view
from apps.tenants import access
from apps.tenants.enums import KeyScope
from apps.tenants.models import OAuthApp
from apps.tenants.oauth import server, services
from apps.tenants.oauth.views import issuer_of
from apps.tenants.queries import deployment_by_key
from kernel.error_codes import ErrorCode
from kernel.errors import NotFound, SilasError
from kernel.tenancy import tenant_scope


@require_http_methods(["GET", "HEAD", "POST"])
def authorize(request: HttpRequest, key: str = "") -> HttpResponseBase:
    """Ask a member to let an app act for them, and redirect to the app with a code or the refusal.

    `key`: the chatbot of the app's company at whose own issuer the app asks.
    """
    if not request.user.is_authenticated:
        return redirect_to_login(request.get_full_path(), reverse("console-login"))
    app = services.app_by_client_id(request.GET.get("client_id", ""))
    memberships = access.memberships_in(request.session, request.user)
    membership = next((row for row in memberships if app and row.tenant_id == app.tenant_id), None)
    if app is None or membership is None or (key and not _is_deployment(app, key)):
        return refused(request, NotFound())
    if access.lacks_second_factor(request.session, request.user, membership.tenant):
        return redirect("console-account")
    origin = issuer_of(request)
    issuer = f"{origin}{server.MCP_PATH}{key}" if key else origin
    try:
        with tenant_scope(app.tenant_id):
            asked = server.check_authorization(app, request.build_absolute_uri(), origin=origin, issuer=issuer)
            if request.method != "POST":
                return _consent_page(request, asked, membership)
            if request.POST.get("decision") != "allow":
                answer = {"error": "access_denied", "state": asked.state}
            else:
                code = services.grant_access(
                    app,
                    request.user,
                    scopes=asked.scopes,
                    audience=asked.audience,
                    redirect_uri=asked.redirect_uri,
                    code_challenge=asked.code_challenge,
                )
                answer = {"code": code, "state": asked.state}
    except server.InvalidRedirect:
        return refused(request, SilasError(ErrorCode.OAUTH_REQUEST_INVALID))
    except server.RefusedRequest as refusal:
        return _to_app(refusal.location)
    return _to_app(server.answer_address(asked.redirect_uri, issuer=issuer, **answer))


def _is_deployment(app: OAuthApp, key: str) -> bool:
    deployment = deployment_by_key(key)
    return deployment is not None and deployment.tenant_id == app.tenant_id


def _consent_page(request: HttpRequest, asked: server.Authorization, membership: object) -> HttpResponseBase:
    target = urlsplit(asked.redirect_uri)
    context = {
        "app": asked.app,
        "membership": membership,
        "scopes": [KeyScope(scope).label for scope in asked.scopes],
        "host": target.netloc,
        "is_local": target.scheme == "http",
        "for_mcp": asked.audience.startswith(server.MCP_PATH),
    }
    response = render(request, "console/consent.html", context)
    # Browsers hold the redirect after the form to its policy as well.
    response.__dict__["_csp_update"] = {"form-action": [f"{target.scheme}://{target.netloc}"]}
    patch_cache_control(response, private=True, no_store=True)
    return response


def _to_app(location: str) -> HttpResponseBase:
    response = HttpResponseRedirect(location)
    response["Referrer-Policy"] = "no-referrer"
    patch_cache_control(response, private=True, no_store=True)
    return response


@require_safe
@staff_view()
def connected_apps(request: StaffRequest) -> HttpResponseBase:
    """List the apps that act for the member in this company."""
    rows = services.connected_apps(request.member.user)
    grants = [{"row": row, "scopes": [KeyScope(scope).label for scope in row.scopes]} for row in rows]
    return page(request, "console/connected_apps.html", at="account", grants=grants)


@require_POST
@staff_view()
def revoke(request: StaffRequest, grant_id: UUID) -> HttpResponseBase:
    services.revoke_access(grant_id, user=request.member.user)
    return redirect("console-connected-apps")
