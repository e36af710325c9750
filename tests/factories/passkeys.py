"""A passkey in software, so that tests can answer as one, and lie as one."""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import dataclass, field
from typing import Any

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from webauthn.helpers import bytes_to_base64url, encode_cbor

from apps.approvals.passkeys import services as passkeys
from kernel.tenancy import tenant_scope

PRESENT, VERIFIED, ATTESTED = 0x01, 0x04, 0x40
RP_ID, ORIGIN = "localhost", "http://localhost:8420"


def _key() -> ec.EllipticCurvePrivateKey:
    return ec.generate_private_key(ec.SECP256R1())


@dataclass
class SoftPasskey:
    """Answers `create` and `get` as a browser would. `counter` rises with each use unless `counts` is off."""

    private: ec.EllipticCurvePrivateKey = field(default_factory=_key)
    credential_id: bytes = field(default_factory=lambda: os.urandom(32))
    counter: int = 0
    counts: bool = True
    flags: int = PRESENT | VERIFIED
    origin: str = ORIGIN

    def create(self, options: dict[str, Any]) -> str:
        client_data = self._client_data("webauthn.create", options["challenge"])
        public = self.private.public_key().public_numbers()
        x, y = (number.to_bytes(32, "big") for number in (public.x, public.y))
        cose = encode_cbor({1: 2, 3: -7, -1: 1, -2: x, -3: y})
        attested = bytes(16) + len(self.credential_id).to_bytes(2, "big") + self.credential_id + cose
        data = self._data(options["rp"]["id"], self.flags | ATTESTED) + attested
        attestation = encode_cbor({"fmt": "none", "attStmt": {}, "authData": data})
        return self._credential(
            clientDataJSON=bytes_to_base64url(client_data), attestationObject=bytes_to_base64url(attestation)
        )

    def get(self, options: dict[str, Any]) -> str:
        client_data = self._client_data("webauthn.get", options["challenge"])
        data = self._data(options["rpId"], self.flags)
        signed = data + hashlib.sha256(client_data).digest()
        signature = self.private.sign(signed, ec.ECDSA(hashes.SHA256()))
        return self._credential(
            clientDataJSON=bytes_to_base64url(client_data),
            authenticatorData=bytes_to_base64url(data),
            signature=bytes_to_base64url(signature),
        )

    def _client_data(self, kind: str, challenge: str) -> bytes:
        return json.dumps({"type": kind, "challenge": challenge, "origin": self.origin}).encode()

    def _data(self, rp_id: str, flags: int) -> bytes:
        self.counter += self.counts
        return hashlib.sha256(rp_id.encode()).digest() + bytes([flags]) + self.counter.to_bytes(4, "big")

    def _credential(self, **response: str) -> str:
        name = bytes_to_base64url(self.credential_id)
        return json.dumps({"id": name, "rawId": name, "type": "public-key", "response": response})


def enrolled(tenant: Any, user: Any, device: SoftPasskey | None = None) -> SoftPasskey:
    """A passkey that the person has registered for their approvals there."""
    device = device or SoftPasskey()
    with tenant_scope(tenant):
        options = passkeys.begin_registration(user, rp_id=RP_ID, origin=ORIGIN)
        passkeys.finish_registration(user, name="Laptop", credential=device.create(options))
    return device
