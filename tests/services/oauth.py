"""An OAuth 2 server on this machine (Authlib): sign-in in a browser with PKCE, codes for devices, refresh, user info.

`deny`, `slow`, `revoke_refresh`, `down` and `skew` make it misbehave as real ones do.
"""

from __future__ import annotations

import http.server
import json
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any
from urllib.parse import parse_qs, parse_qsl, urlencode, urlsplit

os.environ.setdefault("AUTHLIB_INSECURE_TRANSPORT", "1")

from authlib.common.security import generate_token
from authlib.oauth2 import AuthorizationServer
from authlib.oauth2.rfc6749 import OAuth2Request
from authlib.oauth2.rfc6749.grants import AuthorizationCodeGrant, RefreshTokenGrant
from authlib.oauth2.rfc6749.requests import BasicOAuth2Payload
from authlib.oauth2.rfc6750 import BearerTokenGenerator
from authlib.oauth2.rfc7636 import CodeChallenge
from authlib.oauth2.rfc8628 import DeviceAuthorizationEndpoint, DeviceCodeGrant

CLIENT_SECRET = "client-secret-word"
CALLBACK = "https://silas.example/connections/callback"


class Row(SimpleNamespace):
    """A client, a code, a token or a device's code, with the questions that Authlib asks of each."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("get_"):
            return lambda *_: getattr(self, name.removeprefix("get_"), None)
        if name.startswith("check_"):
            return lambda *_: True
        raise AttributeError(name)

    def get_allowed_scope(self, scope: str | None) -> str:
        return scope or ""

    def get_default_redirect_uri(self) -> str:
        return CALLBACK

    def check_redirect_uri(self, uri: str) -> bool:
        return uri.endswith("/connections/callback")

    def check_client_secret(self, secret: str) -> bool:
        return secret == CLIENT_SECRET

    def check_endpoint_auth_method(self, method: str, _: str) -> bool:
        return bool(method in self.methods)

    def is_expired(self) -> bool:
        return bool(self.expires < time.time())


class Service(AuthorizationServer):
    """What it knows is in its lists; tests look at them."""

    def __init__(self) -> None:
        super().__init__()
        self.deny = self.slow = self.revoke_refresh = self.down = False
        self.skew, self.life = 0, 3600
        self.url = ""
        self.codes: dict[str, Row] = {}
        self.devices: dict[str, Row] = {}
        self.tokens: list[Row] = []
        self.approved: set[str] = set()
        self.asked: list[str] = []
        self.register_token_generator(
            "default",
            BearerTokenGenerator(
                lambda **_: f"access-{generate_token(30)}",
                lambda **_: f"refresh-{generate_token(30)}",
                lambda *_: self.life,
            ),
        )
        self.register_grant(_Code, [CodeChallenge(required=True)])
        self.register_grant(_Device)
        self.register_grant(_Refresh)
        self.register_endpoint(_DeviceEndpoint(self))

    def query_client(self, client_id: str) -> Row | None:
        methods = {"public": ("none",), "confidential": ("client_secret_basic", "client_secret_post")}
        known = methods.get(client_id)
        return Row(client_id=client_id, methods=known, token_endpoint_auth_method=known[0]) if known else None

    def save_token(self, token: dict[str, Any], request: OAuth2Request) -> None:
        self.tokens.append(Row(**token, client_id=request.client.client_id, revoked=False, user=request.user))

    def create_oauth2_request(self, request: Any) -> OAuth2Request:
        if isinstance(request, OAuth2Request):
            return request
        method, path, body, headers = request
        made = OAuth2Request(method, self.url + path, headers=headers)
        made.payload = BasicOAuth2Payload(dict(parse_qsl(urlsplit(path).query)) | dict(parse_qsl(body)))
        made.__class__ = _Request
        return made

    def handle_response(self, status: int, body: Any, headers: Any) -> tuple[int, Any, dict[str, str]]:
        return status, body, dict(headers or {})

    def send_signal(self, *_: Any, **__: Any) -> None:
        pass

    def sign_in(self, address: str) -> dict[str, str]:
        """What the browser brings back when somebody says yes (or no) at this address."""
        path = address.removeprefix(self.url)
        request = self.create_oauth2_request(("GET", path, "", {}))
        grant = self.get_consent_grant(request, None if self.deny else "anna")
        _, _, headers = self.create_authorization_response(request, None if self.deny else "anna", grant=grant)
        return dict(parse_qsl(urlsplit(headers["Location"]).query))

    def enter(self, user_code: str) -> None:
        """Somebody enters the code on another device."""
        self.approved.add(user_code)

    @property
    def settings(self) -> dict[str, str]:
        """Of a connection of the client without a secret, by browser."""
        return {
            "service": "Example",
            "client_id": "public",
            "authorization_url": f"{self.url}/authorize",
            "token_url": f"{self.url}/token",
            "userinfo_url": f"{self.url}/userinfo",
        }

    @property
    def device_settings(self) -> dict[str, str]:
        kept = {name: value for name, value in self.settings.items() if name != "authorization_url"}
        return {**kept, "device_url": f"{self.url}/device"}

    @property
    def place(self) -> str:
        return self.url.removeprefix("http://")


class _Request(OAuth2Request):
    @property
    def args(self) -> Any:
        return self.payload.data

    @property
    def form(self) -> Any:
        return self.payload.data


class _Code(AuthorizationCodeGrant):
    TOKEN_ENDPOINT_AUTH_METHODS = ("none", "client_secret_basic", "client_secret_post")

    def save_authorization_code(self, code: str, request: OAuth2Request) -> None:
        self.server.codes[code] = Row(
            code=code,
            client_id=request.client.client_id,
            redirect_uri=request.payload.redirect_uri,
            scope=request.payload.scope or "",
            code_challenge=request.payload.data.get("code_challenge"),
            code_challenge_method=request.payload.data.get("code_challenge_method"),
        )

    def query_authorization_code(self, code: str, client: Row) -> Row | None:
        found = self.server.codes.get(code)
        return found if found and found.client_id == client.client_id else None

    def delete_authorization_code(self, row: Row) -> None:
        del self.server.codes[row.code]

    def authenticate_user(self, _: Row) -> str:
        return "anna"


class _Refresh(RefreshTokenGrant):
    TOKEN_ENDPOINT_AUTH_METHODS = ("none", "client_secret_basic", "client_secret_post")
    INCLUDE_NEW_REFRESH_TOKEN = True

    def authenticate_refresh_token(self, token: str) -> Row | None:
        held = [row for row in self.server.tokens if getattr(row, "refresh_token", "") == token and not row.revoked]
        return held[0] if held and not self.server.revoke_refresh else None

    def authenticate_user(self, row: Row) -> Any:
        return row.user

    def revoke_old_credential(self, row: Row) -> None:
        row.revoked = True


class _Device(DeviceCodeGrant):
    def query_device_credential(self, device_code: str) -> Row | None:
        found: Row | None = self.server.devices.get(device_code)
        return found

    def query_user_grant(self, user_code: str) -> tuple[str, bool] | None:
        if self.server.deny:
            return "anna", False
        return ("anna", True) if user_code in self.server.approved else None

    def should_slow_down(self, _: Row) -> bool:
        return bool(self.server.slow)


class _DeviceEndpoint(DeviceAuthorizationEndpoint):
    INTERVAL = 1

    def get_verification_uri(self) -> str:
        return f"{self.server.url}/activate"

    def save_device_credential(self, client_id: str, scope: str, data: dict[str, Any]) -> None:
        row = Row(
            client_id=client_id, scope=scope, expires=time.time() + data["expires_in"], user_code=data["user_code"]
        )
        self.server.devices[data["device_code"]] = row


class _Handler(http.server.BaseHTTPRequestHandler):
    service: Service

    def do_GET(self) -> None:
        if self.path.startswith("/authorize"):
            self._send_back()
            return
        token = self.headers.get("Authorization", "").removeprefix("Bearer ")
        known = [row for row in self.service.tokens if row.access_token == token]
        self._send(200 if known else 401, {"sub": "1", "email": "anna@example.org"} if known else {})

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode()
        self.service.asked.append(body)
        if self.service.down:
            self._send(503, {})
            return
        request = self.service.create_oauth2_request(("POST", self.path, body, dict(self.headers)))
        if self.path == "/device":
            status, told, _ = self.service.create_endpoint_response(_DeviceEndpoint.ENDPOINT_NAME, request)
        else:
            status, told, _ = self.service.create_token_response(request)
        self._send(status, told)

    def _send_back(self) -> None:
        """Whoever comes with a browser says yes, or no, at once."""
        came = self.service.sign_in(self.service.url + self.path)
        self.send_response(302)
        self.send_header("Location", f"{parse_qs(urlsplit(self.path).query)['redirect_uri'][0]}?{urlencode(came)}")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def _send(self, status: int, told: dict[str, Any]) -> None:
        body = json.dumps(told).encode()
        self.send_response_only(status)
        self.send_header("Date", self.date_time_string(time.time() + self.service.skew))
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        pass


@contextmanager
def serving(port: int = 0) -> Iterator[Service]:
    service = Service()
    handler = type("Handler", (_Handler,), {"service": service})
    with http.server.ThreadingHTTPServer(("127.0.0.1", port), handler) as server:
        service.url = f"http://127.0.0.1:{server.server_port}"
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield service
        server.shutdown()
