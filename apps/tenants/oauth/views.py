"""Addresses of OAuth 2.1 that programs call: tokens, revocation, and the metadata of the server (RFC 8414).

The page on which a member consents is the console's.
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

from apps.tenants.oauth import server, services
from apps.tenants.rules import APP_SCOPES
from kernel.canonical import sha256_hex
from kernel.ratelimit import fixed_window
from kernel.ratelimit.addresses import address_key
from kernel.ratelimit.fixed_window import Limit, Standing
from kernel.tenancy import tenant_scope

# Requests of an address in a minute, for one client and for all. Every token lasts an hour.
MOST_OF_A_CLIENT, MOST_THERE = 60, 300


def issuer_of(request: HttpRequest) -> str:
    """The identifier of this server: the origin at which people open the console."""
    return settings.PASSKEY_ORIGIN or f"{request.scheme}://{request.get_host()}"


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


@require_safe
def metadata(request: HttpRequest) -> HttpResponse:
    issuer = issuer_of(request)
    methods = ["client_secret_basic", "client_secret_post", "none"]
    return JsonResponse(
        {
            "issuer": issuer,
            "authorization_endpoint": f"{issuer}/oauth/authorize",
            "token_endpoint": f"{issuer}/oauth/token",
            "revocation_endpoint": f"{issuer}/oauth/revoke",
            "scopes_supported": [str(scope) for scope in APP_SCOPES],
            "response_types_supported": ["code"],
            "response_modes_supported": ["query"],
            "grant_types_supported": list(server.GRANT_TYPES),
            "token_endpoint_auth_methods_supported": methods,
            "revocation_endpoint_auth_methods_supported": methods,
            "code_challenge_methods_supported": ["S256"],
            "authorization_response_iss_parameter_supported": True,
        }
    )


def _seconds_to_wait(request: HttpRequest, client_id: str) -> int:
    """How long this caller has to wait: each address has a number of requests for one client, and for all of them.

    A client is not counted across addresses, where a stranger who knows its id could use its requests up.
    """
    address = address_key(request.META.get("REMOTE_ADDR", ""))
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
        answer = respond(app, request.build_absolute_uri(), body=body, headers=headers, issuer=issuer_of(request))
    response = HttpResponse(answer.body, status=answer.status, content_type="application/json")
    for name, value in answer.headers.items():
        response[name] = value
    response["Cache-Control"] = "no-store"
    return response
