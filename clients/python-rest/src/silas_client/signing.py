"""Sign decisions of cards with a program's own Ed25519 key. Needs `cryptography`."""

from __future__ import annotations

import base64
import hashlib
import json
from datetime import UTC, datetime
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from silas_client import types as t


def load_key(path: Path) -> Ed25519PrivateKey:
    """The private key in this file (32 bytes), made on first use. Enter its public half at the console, under API keys:
    `key.public_key().public_bytes_raw().hex()`."""
    if not path.exists():
        path.touch(mode=0o600)
        path.write_bytes(Ed25519PrivateKey.generate().private_bytes_raw())
    return Ed25519PrivateKey.from_private_bytes(path.read_bytes())


def key_id(key: Ed25519PrivateKey) -> str:
    """The id under which the platform knows the key: the first 16 digits of the public half's SHA-256."""
    return hashlib.sha256(key.public_key().public_bytes_raw()).hexdigest()[:16]


def signed_decision(
    card: t.CardDetail, choice: str, *, key: Ed25519PrivateKey, user_id: str, freetext: str = ""
) -> t.DecisionRequest:
    """The body of `cards_decide` for this choice, exactly as the card was read. `user_id` is the member on whose behalf
    the key decides. Raises `StopIteration` for a choice that the card does not have."""
    verdict = next(each["verdict"] for each in card["choices"] if each["value"] == choice)
    answered_at = datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
    said = {"choice": choice, **({"freetext": freetext} if freetext else {})}
    claims = {
        "card_id": card["id"],
        "payload_hash": card["payload_hash"],
        "face": card["face_hash"],
        "user_id": user_id,
        "verdict": verdict,
        "approval_strength": "tap",
        "conditions": {},
        "said": {} if verdict == "edit_requested" else said,
        "answered_at": answered_at,
        "step_up": "",
    }
    message = json.dumps(claims, sort_keys=True, separators=(",", ":")).encode()
    body: t.DecisionRequest = {
        "choice": choice,
        "freetext": freetext,
        "face_hash": card["face_hash"],
        "answered_at": answered_at,
        "key_id": key_id(key),
        "signature": base64.b64encode(key.sign(message)).decode(),
    }
    return body
