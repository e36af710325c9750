"""Apps of third parties for tests, and the steps by which one gets its tokens."""

from __future__ import annotations

import base64
import hashlib
import secrets
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

from django.test import Client

from apps.tenants.enums import KeyScope
from apps.tenants.models import User
from apps.tenants.oauth.services import NewApp, register_app
from kernel.tenancy import tenant_scope
from tests.factories.console import browser

CALLBACK = "https://app.example/callback"
ISSUER = "http://testserver"


def make_app(tenant: Any, *scopes: KeyScope, confidential: bool = False, **fields: Any) -> NewApp:
    with tenant_scope(tenant):
        return register_app(
            fields.get("name", "Helper"),
            redirect_uris=fields.get("redirect_uris", [CALLBACK]),
            scopes=scopes or (KeyScope.SESSIONS_READ, KeyScope.SESSIONS_WRITE),
            is_confidential=confidential,
            actor="system",
        )


@dataclass
class Flow:
    """One app's way to its tokens; every parameter can be overridden or left out (None)."""

    app: NewApp
    user: User
    redirect_uri: str = CALLBACK

    def __post_init__(self) -> None:
        self.verifier = secrets.token_urlsafe(48)
        digest = hashlib.sha256(self.verifier.encode()).digest()
        self.challenge = base64.urlsafe_b64encode(digest).decode().rstrip("=")

    def address(self, **changes: Any) -> str:
        given = {
            "response_type": "code",
            "client_id": self.app.app.client_id,
            "redirect_uri": self.redirect_uri,
            "code_challenge": self.challenge,
            "code_challenge_method": "S256",
            "state": "xyz",
        }
        return "/oauth/authorize?" + urlencode({k: v for k, v in {**given, **changes}.items() if v is not None})

    def ask(self, **changes: Any) -> Any:
        return browser(self.user).get(self.address(**changes))

    def decide(self, decision: str = "allow", **changes: Any) -> dict[str, str]:
        """What the app receives at its redirect address."""
        answer = browser(self.user).post(self.address(**changes), {"decision": decision})
        assert answer.status_code == 302, answer.content
        assert answer["Location"].startswith(changes.get("redirect_uri", self.redirect_uri))
        return {name: values[0] for name, values in parse_qs(urlsplit(answer["Location"]).query).items()}

    def request(self, address: str = "/oauth/token", **form: Any) -> Any:
        given = {"client_id": self.app.app.client_id, "client_secret": self.app.secret or None}
        content = urlencode({k: v for k, v in {**given, **form}.items() if v is not None})
        return Client().post(address, content, content_type="application/x-www-form-urlencoded")

    def redeem(self, code: str, **changes: Any) -> Any:
        form = {"redirect_uri": self.redirect_uri, "code_verifier": self.verifier, **changes}
        return self.request(grant_type="authorization_code", code=code, **form)

    def tokens(self, **changes: Any) -> dict[str, Any]:
        answer = self.redeem(self.decide(**changes)["code"], redirect_uri=changes.get("redirect_uri", CALLBACK))
        assert answer.status_code == 200, answer.content
        tokens: dict[str, Any] = answer.json()
        return tokens

    def refresh(self, token: str, **changes: Any) -> Any:
        return self.request(grant_type="refresh_token", refresh_token=token, **changes)


def call(token: str, path: str = "/api/v1/sessions", method: str = "GET", body: str = "") -> Any:
    headers = {"authorization": f"Bearer {token}"}
    return Client().generic(method, path, body, "application/json", headers=headers)
