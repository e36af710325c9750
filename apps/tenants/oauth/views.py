"""Addresses of OAuth 2.1 that programs call: tokens, revocation, registration, and the metadata of the server (RFC
8414).

The page on which a member consents is the console's. Where a company lets apps register themselves, each of its
chatbots is an issuer of its own with an address for registration, because that address has to name the company.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

from django.conf import settings
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_POST, require_safe

from apps.tenants.models import Deployment
from apps.tenants.oauth import registration, server, services
from apps.tenants.queries import deployment_by_key
from apps.tenants.rules import APP_SCOPES, SELF_REGISTERED_SCOPES
from kernel.canonical import sha256_hex
from kernel.errors import NotFound
from kernel.ratelimit import fixed_window
from kernel.ratelimit.addresses import address_key, address_of
from kernel.ratelimit.fixed_window import Limit, Standing
from kernel.tenancy import tenant_scope

# Requests of an address in a minute, for one client and for all. Every token lasts an hour.
MOST_OF_A_CLIENT, MOST_THERE = 60, 300
# Registrations of an address, and for a company, in an hour.
MOST_REGISTRATIONS_THERE, MOST_REGISTRATIONS_HERE = 10, 30


def issuer_of(request: HttpRequest) -> str:
    """The identifier of this server: the origin at which people open the console."""
    return settings.PASSKEY_ORIGIN or f"{request.scheme}://{request.get_host()}"


def issuer_for(request: HttpRequest, deployment: Deployment) -> str:
    """The issuer that the metadata of a chatbot's MCP server names: one of its own where apps may register
    themselves."""
    own = deployment.tenant.apps_register_themselves
    return f"{issuer_of(request)}{server.MCP_PATH}{deployment.public_key}" if own else issuer_of(request)


@csrf_exempt
@require_POST
@sensitive_post_parameters()
def token(request: HttpRequest) -> HttpResponse:
    """Exchange a code, a refresh token or an app's own secret for an access token."""
    return _answer(request, server.issue_token)


@csrf_exempt
@require_POST
@sensitive_post_parameters()
def revoke(request: HttpRequest) -> HttpResponse:
    return _answer(request, server.revoke)


@csrf_exempt
@require_POST
def register(request: HttpRequest, key: str) -> HttpResponse:
    """Register an app that describes itself (RFC 7591). Raises `NotFound` where that is not allowed."""
    deployment = _open_for_registration(key)
    if seconds := _seconds_to_wait_for_registration(request, deployment):
        refused = {"error": "temporarily_unavailable", "error_description": "Too many registrations."}
        return JsonResponse(refused, status=429, headers={"Retry-After": str(seconds), "Cache-Control": "no-store"})
    try:
        with tenant_scope(deployment.tenant_id):
            answer, status = registration.register(request.body), 201
    except registration.RefusedRegistration as refusal:
        answer, status = {"error": refusal.error, "error_description": refusal.description}, 400
    return JsonResponse(answer, status=status, headers={"Cache-Control": "no-store"})


@require_safe
def metadata(request: HttpRequest) -> HttpResponse:
    origin = issuer_of(request)
    return JsonResponse(_metadata(origin, issuer=origin) | {"authorization_endpoint": f"{origin}/oauth/authorize"})


@require_safe
def metadata_of(request: HttpRequest, key: str) -> HttpResponse:
    """The metadata of a chatbot as an issuer. Raises `NotFound` where apps do not register themselves."""
    deployment, origin = _open_for_registration(key), issuer_of(request)
    own = {
        "authorization_endpoint": f"{origin}/oauth/authorize/{deployment.public_key}",
        "registration_endpoint": f"{origin}/oauth/register/{deployment.public_key}",
        "scopes_supported": [str(scope) for scope in SELF_REGISTERED_SCOPES],
    }
    return JsonResponse(_metadata(origin, issuer=issuer_for(request, deployment)) | own)


def _metadata(origin: str, *, issuer: str) -> dict[str, object]:
    methods = ["client_secret_basic", "client_secret_post", "none"]
    return {
        "issuer": issuer,
        "token_endpoint": f"{origin}/oauth/token",
        "revocation_endpoint": f"{origin}/oauth/revoke",
        "scopes_supported": [str(scope) for scope in APP_SCOPES],
        "response_types_supported": ["code"],
        "response_modes_supported": ["query"],
        "grant_types_supported": list(server.GRANT_TYPES),
        "token_endpoint_auth_methods_supported": methods,
        "revocation_endpoint_auth_methods_supported": methods,
        "code_challenge_methods_supported": ["S256"],
        "authorization_response_iss_parameter_supported": True,
    }


def _open_for_registration(key: str) -> Deployment:
    deployment = deployment_by_key(key)
    if deployment is None or not deployment.tenant.apps_register_themselves:
        raise NotFound()
    return deployment


def _seconds_to_wait_for_registration(request: HttpRequest, deployment: Deployment) -> int:
    """How long a stranger has to wait. Where nothing can be counted nothing is registered."""
    address = address_key(address_of(request))
    for limit in (
        Limit(f"oauth-register:{address}", MOST_REGISTRATIONS_THERE, 3600),
        Limit(f"oauth-register-of:{deployment.tenant_id}", MOST_REGISTRATIONS_HERE, 3600),
    ):
        standing = fixed_window.try_count(limit, otherwise="oauth_registration_not_counted")
        # Registration is open to strangers: uncounted it would be unlimited (fail closed).
        if not isinstance(standing, Standing):
            return 60
        if standing.left < 0:
            return max(1, math.ceil(standing.seconds))
    return 0


def _seconds_to_wait(request: HttpRequest, client_id: str) -> int:
    """How long this caller has to wait: each address has a number of requests for one client, and for all of them.

    A client is not counted across addresses, where a stranger who knows its id could use its requests up.
    """
    address = address_key(address_of(request))
    client = sha256_hex(client_id)[:32]
    for limit in (
        Limit(f"oauth:{address}:{client}", MOST_OF_A_CLIENT, 60),
        Limit(f"oauth:{address}", MOST_THERE, 60),
    ):
        standing = fixed_window.try_count(limit, otherwise="oauth_uncounted")
        if isinstance(standing, Standing) and standing.left < 0:
            return max(1, math.ceil(standing.seconds))
    return 0


def _answer(request: HttpRequest, respond: Callable[..., server.Response]) -> HttpResponse:
    headers = {name.title(): value for name, value in request.headers.items() if name.title() != "Origin"}
    body = request.body.decode("utf-8", "replace")
    client_id = server.client_id_of_request(headers, request.POST.dict())
    if seconds := _seconds_to_wait(request, client_id):
        refused = {"error": "temporarily_unavailable", "error_description": "Too many requests."}
        return JsonResponse(refused, status=429, headers={"Retry-After": str(seconds), "Cache-Control": "no-store"})
    app = services.app_by_client_id(client_id)
    scope: Any = tenant_scope(app.tenant_id) if app else nullcontext()
    with scope:
        answer = respond(app, request.build_absolute_uri(), body=body, headers=headers, origin=issuer_of(request))
    response = HttpResponse(answer.body, status=answer.status, content_type="application/json")
    for name, value in answer.headers.items():
        response[name] = value
    # Tokens must not stay in a cache (RFC 6749, 5.1).
    response["Cache-Control"] = "no-store"
    return response
