"""Short-lived visitor tokens bound to a deployment and a session, and long-lived resume tokens.

A resume token is stored as a hash only. Neither is ever part of a URL.
"""

from __future__ import annotations

import hashlib
import secrets
from dataclasses import dataclass
from uuid import UUID

from django.conf import settings
from django.core import signing
from django.utils.crypto import salted_hmac

_SALT = "silas.visitor"
_TEST_SALT = "silas.test_chat"
_PROGRAM_SALT = "silas.program_session"
_TEST_SECONDS = 12 * 3600


@dataclass(frozen=True)
class Visitor:
    deployment_key: str
    tenant_id: UUID
    session_id: UUID


def mint(visitor: Visitor) -> str:
    value = {"k": visitor.deployment_key, "t": visitor.tenant_id.hex, "s": visitor.session_id.hex}
    return signing.dumps(value, salt=_SALT)


def read(token: str) -> Visitor | None:
    """The visitor this token was made for; None when it is forged, stale or broken."""
    try:
        value = signing.loads(token, salt=_SALT, max_age=settings.VISITOR_TOKEN_SECONDS)
        return Visitor(str(value["k"]), UUID(hex=value["t"]), UUID(hex=value["s"]))
    except (signing.BadSignature, KeyError, TypeError, ValueError):
        return None


def test_ticket(deployment_key: str) -> str:
    """What the console gives its preview of a deployment: a conversation begun with it is a test, and nothing more."""
    return signing.TimestampSigner(salt=_TEST_SALT).sign(deployment_key)


def is_test_ticket(text: str, deployment_key: str) -> bool:
    try:
        return signing.TimestampSigner(salt=_TEST_SALT).unsign(text, max_age=_TEST_SECONDS) == deployment_key
    except signing.BadSignature:
        return False


def new_resume_token() -> str:
    return secrets.token_urlsafe(32)


def resume_token_of(session_id: UUID) -> str:
    """The resume token of a conversation that a program holds, which it is never told."""
    return salted_hmac(_PROGRAM_SALT, session_id.hex, algorithm="sha256").hexdigest()


def hash_resume_token(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()
