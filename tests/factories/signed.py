"""A site that signs who its visitor is: keys registered with a deployment, and tokens good and bad."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, generate_private_key
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.rsa import generate_private_key as rsa_key
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

from apps.tenants.models import Deployment, IdentityKey
from apps.tenants.services import add_identity_key
from kernel.clock import now
from kernel.tenancy import tenant_scope

MAKE: Mapping[str, Any] = {
    "EdDSA": Ed25519PrivateKey.generate,
    "ES256": lambda: generate_private_key(SECP256R1()),
    "RS256": lambda: rsa_key(65537, 2048),
}


@dataclass(frozen=True)
class Site:
    """The server of the page around the widget. `secret` signs: the shared one, or the private half as PEM."""

    deployment: Deployment
    row: IdentityKey
    secret: str

    def claims(self, **changes: Any) -> dict[str, Any]:
        """`changes` with None take a claim out."""
        moment = int(now().timestamp())
        good = {"sub": "C-1", "name": "Maria Ortega", "iat": moment, "exp": moment + 600, "jti": "one"}
        claims = {**good, "aud": self.deployment.public_key, **changes}
        return {name: value for name, value in claims.items() if value is not None}

    def sign(
        self, *, headers: Mapping[str, Any] | None = None, secret: str = "", algorithm: str = "", **claims: Any
    ) -> str:
        named = {"kid": self.row.key_id} if headers is None else dict(headers)
        key, how = secret or self.secret, algorithm or self.row.algorithm
        return jwt.encode(self.claims(**claims), key, algorithm=how, headers=named)


def make_site(deployment: Deployment, algorithm: str = "HS256", *, key_id: str = "web", **fields: Any) -> Site:
    private, public = ("", "") if algorithm == "HS256" else key_pair(algorithm)
    with tenant_scope(deployment.tenant_id):
        new = add_identity_key(deployment, key_id=key_id, algorithm=algorithm, public_key=public, **fields)
    return Site(deployment, new.row, new.secret or private)


def key_pair(algorithm: str) -> tuple[str, str]:
    """(private, public) as PEM."""
    key = MAKE[algorithm]()
    private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    public = key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    return private.decode(), public.decode()


def unsigned(header: Any, claims: Any, signature: str = "") -> str:
    """A token put together by hand, as somebody does who has no key."""
    return ".".join((_part(header), _part(claims), signature))


def _part(value: Any) -> str:
    raw = value.encode() if isinstance(value, str) else json.dumps(value).encode()
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")
