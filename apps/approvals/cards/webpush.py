"""Encrypt web pushes for one browser (RFC 8291) and sign their request (VAPID, RFC 8292).

The installation's key pair is derived from `SILAS_SECRETS_KEY` whenever it is needed and stored nowhere. If that key
changes, browsers have to subscribe again. Pure but for that key.
"""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Mapping
from urllib.parse import urlsplit

import jwt
from cryptography.exceptions import InvalidKey
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat
from django.conf import settings

from kernel.error_codes import ErrorCode
from kernel.errors import SilasError
from kernel.language import gettext

_ORDER = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551  # of P-256
_VALID_SECONDS, _KEEP_SECONDS = 12 * 3600, 3600
_POINT_BYTES, _AUTH_BYTES = 65, 16


def public_key() -> str:
    """Return the key that a browser subscribes with: the uncompressed point in URL-safe base64."""
    return _text(_private_key().public_key().public_bytes(Encoding.X962, PublicFormat.UncompressedPoint))


def keys_problem(p256dh: str, auth: str) -> str:
    """Return what is wrong with a browser's keys, or ""."""
    try:
        point, secret = _bytes(p256dh), _bytes(auth)
        ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), point)
    except (ValueError, InvalidKey):
        return gettext("These aren't valid push keys.")
    # A compressed point is a key of the curve too, but RFC 8291 takes the uncompressed form only.
    fit = len(point) == _POINT_BYTES and len(secret) == _AUTH_BYTES
    return "" if fit else gettext("These aren't valid push keys.")


def encrypt_payload(endpoint: str, p256dh: str, auth: str, payload: Mapping[str, object]) -> bytes:
    """Return the payload as JSON, encrypted for one browser."""
    from webpush import WebPush, WebPushSubscription

    ours = _private_key()
    sealing = WebPush(
        ours.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()),
        ours.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo),
        subscriber=settings.DEFAULT_FROM_EMAIL,
    )
    browser = WebPushSubscription.model_validate({"endpoint": endpoint, "keys": {"p256dh": p256dh, "auth": auth}})
    return bytes(sealing.get(json.dumps(payload, separators=(",", ":")), browser).encrypted)


def push_headers(endpoint: str, *, urgent: bool) -> dict[str, str]:
    """Return the headers that name the sender and say how long the push service keeps the message.

    The library's own headers leave the port of a push service out of what is signed, so they are built here.
    """
    parts = urlsplit(endpoint)
    claims = {
        "aud": f"{parts.scheme}://{parts.netloc}",
        "exp": int(time.time()) + _VALID_SECONDS,
        "sub": f"mailto:{settings.DEFAULT_FROM_EMAIL}",
    }
    signed = jwt.encode(claims, _private_key(), algorithm="ES256")
    return {
        "Authorization": f"vapid t={signed}, k={public_key()}",
        "Content-Type": "application/octet-stream",
        "Content-Encoding": "aes128gcm",
        "TTL": str(_KEEP_SECONDS),
        "Urgency": "high" if urgent else "normal",
    }


def _private_key() -> ec.EllipticCurvePrivateKey:
    if not settings.SILAS_SECRETS_KEY:
        raise SilasError(ErrorCode.PUSH_OFF)
    # 48 bytes, so that no number of the curve is likelier than another (FIPS 186-5, A.2.1).
    derived = HKDF(SHA256(), 48, salt=None, info=b"silas-web-push-1").derive(settings.SILAS_SECRETS_KEY.encode())
    return ec.derive_private_key(int.from_bytes(derived) % (_ORDER - 1) + 1, ec.SECP256R1())


def _bytes(text: str) -> bytes:
    # Browsers send URL-safe base64 without padding.
    return base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)


def _text(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")
