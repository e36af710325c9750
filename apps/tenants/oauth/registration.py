"""Dynamic registration of MCP clients (RFC 7591), where the company of the chatbot allows it.

What a stranger describes becomes a public app with PKCE, whose scopes are those of the tools of MCP servers. Metadata
of other kinds is ignored; what is registered instead of what was asked for is in the answer.
"""

from __future__ import annotations

import json

from apps.tenants.models import OAuthApp
from apps.tenants.oauth import services
from apps.tenants.rules import SELF_REGISTERED_SCOPES
from kernel.errors import SilasError
from kernel.unicode_safety import has_hidden_characters

MOST_BYTES, LONGEST_NAME, DEFAULT_NAME = 16 * 1024, 80, "MCP client"
GRANT_TYPES, RESPONSE_TYPES = ("authorization_code", "refresh_token"), ("code",)


class RefusedRegistration(Exception):
    """`error` as RFC 7591, 3.2.2 names it."""

    def __init__(self, error: str, description: str) -> None:
        super().__init__(description)
        self.error, self.description = error, description


def register(body: bytes) -> dict[str, object]:
    """Register the app that a request describes, in the scope of its tenant; returns what is registered. Raises
    `RefusedRegistration`."""
    asked = _asked(body)
    name, redirects, scopes = _name(asked), _texts(asked, "redirect_uris"), _scopes(asked)
    if not redirects:
        raise RefusedRegistration("invalid_redirect_uri", "redirect_uris is missing.")
    if not set(_texts(asked, "grant_types") or GRANT_TYPES) <= set(GRANT_TYPES):
        raise RefusedRegistration("invalid_client_metadata", f"grant_types: {', '.join(GRANT_TYPES)}.")
    if not set(_texts(asked, "response_types") or RESPONSE_TYPES) <= set(RESPONSE_TYPES):
        raise RefusedRegistration("invalid_client_metadata", "response_types: code.")
    try:
        app = services.register_itself(name, redirect_uris=redirects, scopes=scopes)
    except SilasError as refusal:
        raise RefusedRegistration("invalid_redirect_uri", str(refusal.message)) from None
    return _answer(app)


def _answer(app: OAuthApp) -> dict[str, object]:
    return {
        "client_id": app.client_id,
        "client_id_issued_at": int(app.created_at.timestamp()),
        "client_name": app.name,
        "redirect_uris": app.redirect_uris,
        "grant_types": list(GRANT_TYPES),
        "response_types": list(RESPONSE_TYPES),
        "token_endpoint_auth_method": "none",
        "scope": " ".join(app.scopes),
    }


def _asked(body: bytes) -> dict[str, object]:
    try:
        asked = json.loads(body) if len(body) <= MOST_BYTES else None
    except (ValueError, RecursionError):
        asked = None
    if not isinstance(asked, dict):
        raise RefusedRegistration("invalid_client_metadata", f"Send a JSON object of at most {MOST_BYTES} bytes.")
    return asked


def _name(asked: dict[str, object]) -> str:
    """The name that members read on the page of consent: one line that shows all of its characters."""
    name = asked.get("client_name", DEFAULT_NAME)
    # A stranger chooses this name, and a member reads it when asked for consent (phishing).
    if not isinstance(name, str) or len(name) > LONGEST_NAME or has_hidden_characters(name) or not name.isprintable():
        raise RefusedRegistration("invalid_client_metadata", f"client_name: a line of {LONGEST_NAME} characters.")
    return " ".join(name.split()) or DEFAULT_NAME


def _texts(asked: dict[str, object], field: str) -> list[str]:
    value = asked.get(field, [])
    if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
        raise RefusedRegistration("invalid_client_metadata", f"{field}: a list of strings.")
    return value


def _scopes(asked: dict[str, object]) -> list[str]:
    """What is asked for of what such an app can get; all of it where nothing is asked for."""
    scope = asked.get("scope", "")
    if not isinstance(scope, str):
        raise RefusedRegistration("invalid_client_metadata", "scope: names separated by spaces.")
    wanted, most = scope.split(), [str(each) for each in SELF_REGISTERED_SCOPES]
    scopes = [each for each in most if each in wanted] if wanted else most
    if not scopes:
        raise RefusedRegistration("invalid_client_metadata", f"scope: some of {' '.join(most)}.")
    return scopes
