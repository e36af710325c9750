"""The protocol of OAuth 2.1, by oauthlib on our own rows (ADR 127).

Three grants are offered: authorization code with PKCE (S256 only), refresh token, and client credentials. Redirect
addresses are compared as they were registered, a resource (RFC 8707) is the REST API or one of the tenant's MCP
servers; for an app that registered itself only the latter. Everything but `client_id_of_request` runs in the scope of
the app's tenant.
"""

from __future__ import annotations

import base64
import binascii
import hmac
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote_plus

from oauthlib.common import Request, add_params_to_uri
from oauthlib.oauth2 import (
    AuthorizationCodeGrant,
    BearerToken,
    ClientCredentialsGrant,
    RefreshTokenGrant,
    RequestValidator,
    RevocationEndpoint,
    TokenEndpoint,
)
from oauthlib.oauth2.rfc6749.errors import CustomOAuth2Error, InvalidRequestError, OAuth2Error
from oauthlib.oauth2.rfc6749.grant_types.authorization_code import code_challenge_method_s256

from apps.tenants.models import Deployment, OAuthApp, OAuthGrant, OAuthToken
from apps.tenants.oauth import services
from apps.tenants.rules import is_registered_redirect
from kernel.canonical import sha256_hex

GRANT_TYPES = ("authorization_code", "refresh_token", "client_credentials")
API_PATH, MCP_PATH = "/api/v1", "/mcp/deployments/"
_CHALLENGE = re.compile(r"[A-Za-z0-9_-]{43}")
_VERIFIER = re.compile(r"[A-Za-z0-9._~-]{43,128}")


@dataclass(frozen=True)
class Response:
    status: int
    headers: Mapping[str, str]
    body: str


@dataclass(frozen=True)
class Authorization:
    """A valid request for a member's consent."""

    app: OAuthApp
    redirect_uri: str
    state: str
    scopes: tuple[str, ...]
    audience: str
    code_challenge: str


class InvalidRedirect(Exception):
    """The request names no registered redirect address: it must be answered here and never by a redirect."""


class RefusedRequest(Exception):
    """An authorization request that is refused by a redirect to `location`."""

    def __init__(self, location: str) -> None:
        super().__init__(location)
        self.location = location


def client_id_of_request(headers: Mapping[str, str], form: Mapping[str, str]) -> str:
    """The client that a request to the token endpoint names, by Basic authentication or in its form. Not
    authenticated."""
    client_id, _ = _basic(headers) or (form.get("client_id", ""), "")
    return client_id


def check_authorization(app: OAuthApp, uri: str, *, origin: str, issuer: str) -> Authorization:
    """Check a request for a member's consent. `issuer`: whom the app asked. Raises `InvalidRedirect` and
    `RefusedRequest`."""
    request = Request(uri)
    try:
        duplicates = set(request.duplicate_params)
    except ValueError:
        raise InvalidRedirect from None
    given = request.redirect_uri or ""
    # Of two values ours and the browser's idea of the right one may differ (parameter pollution).
    if {"client_id", "redirect_uri"} & duplicates or not is_registered_redirect(given, app.redirect_uris):
        raise InvalidRedirect
    try:
        if duplicates:
            raise InvalidRequestError(description="Duplicate parameters.", request=request)
        validator = Validator(app, origin)
        _code_grant(validator).validate_authorization_request(request)
        if not _CHALLENGE.fullmatch(request.code_challenge):
            raise InvalidRequestError(description="Invalid code_challenge.", request=request)
        audience = validator.audience_of(request)
        if app.is_self_registered and not audience:
            raise CustomOAuth2Error("invalid_target", description="Name an MCP server.", request=request)
    except OAuth2Error as problem:
        problem.response_mode = None
        raise RefusedRequest(answer_address(given, issuer=issuer, **dict(problem.twotuples))) from None
    return Authorization(
        app, given, request.state or "", tuple(sorted(set(request.scopes))), audience, request.code_challenge
    )


def answer_address(redirect_uri: str, *, issuer: str, **answer: str) -> str:
    """The redirect address with an answer, and with the issuer against mix-up (RFC 9207)."""
    given = [(name, value) for name, value in answer.items() if value]
    return str(add_params_to_uri(redirect_uri, [*given, ("iss", issuer)]))


def issue_token(app: OAuthApp | None, uri: str, *, body: str, headers: Mapping[str, str], origin: str) -> Response:
    """Answer a request for tokens."""
    validator = Validator(app, origin)
    bearer = BearerToken(
        validator,
        token_generator=services.new_access_token,
        refresh_token_generator=services.new_refresh_token,
        expires_in=services.ACCESS_SECONDS,
    )
    grants = {
        "authorization_code": _code_grant(validator),
        "refresh_token": RefreshTokenGrant(validator),
        "client_credentials": ClientCredentialsGrant(validator),
    }
    endpoint = TokenEndpoint("authorization_code", default_token_type=bearer, grant_types=grants)
    return _response(endpoint.create_token_response, uri, body, headers)


def revoke(app: OAuthApp | None, uri: str, *, body: str, headers: Mapping[str, str], origin: str) -> Response:
    """Answer a request to revoke a token (RFC 7009)."""
    endpoint = RevocationEndpoint(Validator(app, origin))
    return _response(endpoint.create_revocation_response, uri, body, headers)


def _response(create: Callable[..., Any], uri: str, body: str, headers: Mapping[str, str]) -> Response:
    try:
        answered, content, status = create(uri, "POST", body, dict(headers))
    except OAuth2Error as problem:
        return Response(problem.status_code, problem.headers, problem.json)
    return Response(status, answered, content or "")


def _code_grant(validator: RequestValidator) -> AuthorizationCodeGrant:
    grant = AuthorizationCodeGrant(validator)
    # oauthlib also knows "plain", which protects nothing once the request was seen.
    grant._code_challenge_methods = {"S256": code_challenge_method_s256}
    return grant


class Validator(RequestValidator):  # type: ignore[misc]  # oauthlib has no types
    """Decides for oauthlib about one app of the scope's tenant; without an app every request is refused."""

    def __init__(self, app: OAuthApp | None, origin: str) -> None:
        super().__init__()
        self.app, self.origin = app, origin
        self._grant: OAuthGrant | None = None
        self._used: OAuthToken | None = None

    def audience_of(self, request: Request) -> str:
        """The audience of the request's resource. Raises `invalid_target`."""
        if "resource" in request.duplicate_params:
            raise CustomOAuth2Error("invalid_target", description="Name one resource.", request=request)
        resource = getattr(request, "resource", None) or ""
        if resource in ("", self.origin, f"{self.origin}/", f"{self.origin}{API_PATH}"):
            return ""
        key = resource.removeprefix(f"{self.origin}{MCP_PATH}")
        if key == resource or not Deployment.objects.filter(public_key=key).exists():
            raise CustomOAuth2Error("invalid_target", description="Unknown resource.", request=request)
        return f"{MCP_PATH}{key}"

    # -- the app ---------------------------------------------------------------------------------------------------

    def client_authentication_required(self, request: Request, *args: object, **kwargs: object) -> bool:
        return self.app is None or self.app.is_confidential or request.grant_type == "client_credentials"

    def authenticate_client(self, request: Request, *args: object, **kwargs: object) -> bool:
        client_id, secret = _basic(request.headers) or (request.client_id or "", request.client_secret or "")
        if self.app is None or client_id != self.app.client_id or not self.app.is_confidential:
            return False
        request.client = self.app
        # In constant time, and over hashes of equal length.
        return hmac.compare_digest(sha256_hex(secret), self.app.hashed_secret)

    def authenticate_client_id(self, client_id: str, request: Request, *args: object, **kwargs: object) -> bool:
        request.client = self.app
        return self.app is not None and client_id == self.app.client_id and not self.app.is_confidential

    def validate_client_id(self, client_id: str, request: Request, *args: object, **kwargs: object) -> bool:
        request.client = self.app
        return self.app is not None and client_id == self.app.client_id

    def validate_redirect_uri(
        self, client_id: str, redirect_uri: str, request: Request, *args: object, **kwargs: object
    ) -> bool:
        return self.app is not None and is_registered_redirect(redirect_uri, self.app.redirect_uris)

    def get_default_redirect_uri(self, client_id: str, request: Request, *args: object, **kwargs: object) -> str:
        return ""

    def validate_response_type(
        self, client_id: str, response_type: str, client: object, request: Request, *args: object, **kwargs: object
    ) -> bool:
        return response_type == "code"

    def validate_grant_type(
        self, client_id: str, grant_type: str, client: object, request: Request, *args: object, **kwargs: object
    ) -> bool:
        self.audience_of(request)
        return grant_type in GRANT_TYPES

    def get_default_scopes(self, client_id: str, request: Request, *args: object, **kwargs: object) -> list[str]:
        return self.app.scopes if self.app else []

    def validate_scopes(
        self, client_id: str, scopes: list[str], client: object, request: Request, *args: object, **kwargs: object
    ) -> bool:
        return self.app is not None and bool(scopes) and set(scopes) <= set(self.app.scopes)

    # -- codes -----------------------------------------------------------------------------------------------------

    def is_pkce_required(self, client_id: str, request: Request) -> bool:
        return True

    def validate_code(
        self, client_id: str, code: str, client: OAuthApp, request: Request, *args: object, **kwargs: object
    ) -> bool:
        self._grant = services.lock_code(client, code)
        if self._grant is None:
            return False
        request.scopes = [scope for scope in self._grant.scopes if scope in client.scopes]
        request.user = self._grant.user_id
        # A token for one resource must not be turned into one for another (RFC 8707).
        if not self._is_audience(request):
            raise CustomOAuth2Error("invalid_target", request=request)
        return request.code_verifier is None or _VERIFIER.fullmatch(request.code_verifier) is not None

    def get_code_challenge(self, code: str, request: Request) -> str:
        return self._grant.code_challenge if self._grant else ""

    def get_code_challenge_method(self, code: str, request: Request) -> str:
        return "S256"

    def confirm_redirect_uri(
        self,
        client_id: str,
        code: str,
        redirect_uri: str,
        client: object,
        request: Request,
        *args: object,
        **kwargs: object,
    ) -> bool:
        if self.app is None or self._grant is None or redirect_uri != self._grant.redirect_uri:
            return False
        return is_registered_redirect(redirect_uri, self.app.redirect_uris)

    def invalidate_authorization_code(
        self, client_id: str, code: str, request: Request, *args: object, **kwargs: object
    ) -> None:
        """Done by `save_bearer_token`, in the same statement order as every use of a grant."""

    # -- tokens ----------------------------------------------------------------------------------------------------

    def validate_refresh_token(
        self, refresh_token: str, client: OAuthApp, request: Request, *args: object, **kwargs: object
    ) -> bool:
        self._used = services.lock_refresh_token(client, refresh_token)
        if self._used is None:
            return False
        self._grant = self._used.grant
        if not self._is_audience(request):
            raise CustomOAuth2Error("invalid_target", request=request)
        return True

    def get_original_scopes(self, refresh_token: str, request: Request, *args: object, **kwargs: object) -> list[str]:
        app_scopes = self.app.scopes if self.app else []
        return [scope for scope in self._used.scopes if scope in app_scopes] if self._used else []

    def save_bearer_token(self, token: dict[str, Any], request: Request, *args: Any, **kwargs: object) -> None:
        if self._grant is None:
            audience = self.audience_of(request)
            self._grant = services.own_grant(request.client, scopes=request.scopes, audience=audience)
        services.save_tokens(
            self._grant,
            access_token=token["access_token"],
            refresh_token=token.get("refresh_token", ""),
            scopes=request.scopes,
            used=self._used,
        )

    def revoke_token(self, token: str, token_type_hint: str, request: Request, *args: object, **kwargs: object) -> None:
        services.revoke_token(request.client, token)

    def _is_audience(self, request: Request) -> bool:
        """Whether the request repeats the resource of its grant, or names none."""
        named = getattr(request, "resource", None)
        return named is None or (self._grant is not None and self.audience_of(request) == self._grant.audience)


def _basic(headers: Mapping[str, str]) -> tuple[str, str] | None:
    """Client id and secret of Basic authentication, which are form-encoded inside it (RFC 6749, 2.3.1)."""
    scheme, _, given = headers.get("Authorization", "").partition(" ")
    if scheme.lower() != "basic":
        return None
    try:
        client_id, _, secret = base64.b64decode(given.strip(), validate=True).decode().partition(":")
    except (binascii.Error, UnicodeDecodeError):
        return ("", "")
    return unquote_plus(client_id), unquote_plus(secret)
