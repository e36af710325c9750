"""A company's OpenID Connect provider on this machine: discovery, keys and tokens, and lies where a test wants them."""

from __future__ import annotations

import base64
import hashlib
import json
import secrets
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import jwt
from cryptography.hazmat.primitives.asymmetric import rsa

CLIENT_ID, SECRET = "silas", "a-client-secret"


def _key() -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(public_exponent=65537, key_size=2048)


@dataclass
class Provider:
    """`says` is laid over the claims of every token, `header` over its header; `discovery` over its description."""

    issuer: str = ""
    key: rsa.RSAPrivateKey = field(default_factory=_key)
    signs_with: Any = None
    says: dict[str, Any] = field(default_factory=dict)
    discovery: dict[str, Any] = field(default_factory=dict)
    header: dict[str, Any] = field(default_factory=dict)
    algorithm: str = "RS256"
    status: int = 200
    asked: dict[str, dict[str, str]] = field(default_factory=dict)
    person: dict[str, Any] = field(default_factory=dict)
    forms: list[dict[str, str]] = field(default_factory=list)

    def let_in(self, address: str, **person: Any) -> str:
        """Somebody logs in here: from our address to it, to the address that they come back to."""
        query = {name: values[0] for name, values in parse_qs(urlsplit(address).query).items()}
        code = secrets.token_urlsafe(8)
        self.asked[code] = {**query, "person": json.dumps(person or self.person)}
        return f"{query['redirect_uri']}?{urlencode({'code': code, 'state': query['state']})}"

    def description(self) -> dict[str, Any]:
        return {
            "issuer": self.issuer,
            "authorization_endpoint": f"{self.issuer}/authorize",
            "token_endpoint": f"{self.issuer}/token",
            "jwks_uri": f"{self.issuer}/keys",
            **self.discovery,
        }

    def keys(self) -> dict[str, Any]:
        public = jwt.algorithms.RSAAlgorithm.to_jwk(self.key.public_key(), as_dict=True)
        return {"keys": [{**public, "kid": "one", "use": "sig", "alg": "RS256"}]}

    def token(self, form: dict[str, str]) -> tuple[int, dict[str, Any]]:
        """Good once, for whoever knows the secret and the verifier."""
        self.forms.append(form)
        asked = self.asked.pop(form.get("code", ""), None)
        challenge = base64.urlsafe_b64encode(hashlib.sha256(form.get("code_verifier", "").encode()).digest())
        wanted = (SECRET, challenge.rstrip(b"=").decode())
        if asked is None or (form.get("client_secret"), asked["code_challenge"]) != wanted:
            return 400, {"error": "invalid_grant"}
        moment = int(time.time())
        claims = {
            "iss": self.issuer,
            "aud": CLIENT_ID,
            "sub": "person-1",
            "iat": moment,
            "exp": moment + 300,
            "nonce": asked["nonce"],
            **json.loads(asked["person"]),
            **self.says,
        }
        claims = {name: value for name, value in claims.items() if value is not None}
        signer = self.signs_with if self.signs_with is not None else self.key
        return 200, {"id_token": jwt.encode(claims, signer, self.algorithm, headers={"kid": "one", **self.header})}


@contextmanager
def provider() -> Iterator[Provider]:
    known = Provider()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            path, _, query = self.path.partition("?")
            if path == "/authorize":
                self.send_response(302)
                self.send_header("Location", known.let_in(f"{known.issuer}/authorize?{query}"))
                self.end_headers()
                return
            found = {"/.well-known/openid-configuration": known.description, "/keys": known.keys}.get(path)
            self._answer(known.status if found else 404, found() if found else {})

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"])).decode()
            self._answer(*known.token({name: values[0] for name, values in parse_qs(body).items()}))

        def _answer(self, status: int, said: dict[str, Any]) -> None:
            body = json.dumps(said).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            """Quiet: the test says what it saw."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    known.issuer = f"http://localhost:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield known
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
