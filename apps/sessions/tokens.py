"""Is this socket that visitor? Short-lived tokens bound to a deployment and a session, and long-lived resume tokens.

A resume token is kept as a hash only. Neither ever stands in a URL.
"""

from __future__ import annotations

import hashlib
import secrets
from dataclasses import dataclass
from uuid import UUID

from django.conf import settings
from django.core import signing

_SALT = "silas.visitor"


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


def new_resume_token() -> str:
    return secrets.token_urlsafe(32)


def hash_resume_token(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()
