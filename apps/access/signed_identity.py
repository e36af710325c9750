"""Verify a site's signed token that says who its visitor is.

The key decides how a token is checked, never the token. Nothing of a token is stored.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import jwt

from apps.tenants.enums import IdentityAlgorithm
from apps.tenants.queries import VerifyingKey
from kernel.clock import now
from kernel.unicode_safety import has_hidden_characters

if TYPE_CHECKING:
    from jwt.types import Options

# A stolen token of any length would open records for as long.
LONGEST_LIFE = timedelta(hours=1)
# How far the site's clock may go before ours. Never beyond the end that a token names itself.
CLOCKS_DIFFER = timedelta(seconds=30)
LAST_SECOND = datetime(9999, 1, 1, tzinfo=UTC).timestamp()
MAX_TOKEN, MAX_SUBJECT, MAX_NAME, MAX_CONTACT = 8192, 80, 120, 254
# Times are ours to judge, by our clock; and who is meant stands in `aud` or `iss`.
_OPTIONS: Options = {
    "require": ["exp", "sub"],
    "verify_exp": False,
    "verify_nbf": False,
    "verify_iat": False,
    "verify_aud": False,
    "verify_iss": False,
    "verify_sub": False,
    # A page sends one token with every window and reconnect, so it may be used again until it ends.
    "verify_jti": False,
}


@dataclass(frozen=True)
class Identity:
    """What a good token says: which of the tenant's customers this is, until when, and which gate that passes. `email`,
    `phone` and `attributes` are as the site wrote them; who keeps them checks their form."""

    customer: str
    name: str
    until: datetime
    gate: str
    email: str = ""
    phone: str = ""
    attributes: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True)
class Unproven:
    """Why a token is not believed; one of the codes of docs/access.md."""

    code: str


def read(token: str, keys: Sequence[VerifyingKey], *, audience: str) -> Identity | Unproven:
    """Check the signature, then whom, when and where it means. Pure but for the clock."""
    if not keys:
        return Unproven("identity_key_missing")
    if len(token) > MAX_TOKEN:
        return Unproven("identity_malformed")
    key = _key_for(token, keys)
    if isinstance(key, Unproven):
        return key
    try:
        claims = jwt.decode(token, key.key, algorithms=[key.algorithm], options=_OPTIONS)
    except jwt.InvalidSignatureError:
        return Unproven("identity_signature")
    except jwt.MissingRequiredClaimError:
        return Unproven("identity_incomplete")
    except (jwt.PyJWTError, ValueError, RecursionError):
        return Unproven("identity_malformed")
    return _judge(claims, key, audience, now())


def _key_for(token: str, keys: Sequence[VerifyingKey]) -> VerifyingKey | Unproven:
    """The key that the header names, or the newest of its algorithm; a header can only choose among what is registered,
    and never how a key is used."""
    try:
        header = jwt.get_unverified_header(token)
    except (jwt.PyJWTError, ValueError, RecursionError):
        return Unproven("identity_malformed")
    if header.get("alg") not in IdentityAlgorithm.values:
        return Unproven("identity_algorithm")
    named = [key for key in keys if key.key_id == header["kid"]] if "kid" in header else list(keys)
    if not named:
        return Unproven("identity_key_unknown")
    fitting = [key for key in named if key.algorithm == header["alg"]]
    return fitting[0] if fitting else Unproven("identity_algorithm")


def _judge(claims: Mapping[str, Any], key: VerifyingKey, audience: str, moment: datetime) -> Identity | Unproven:
    until, issued = _moment(claims["exp"]), _moment(claims.get("iat", moment.timestamp()))
    begins = _moment(claims.get("nbf", moment.timestamp()))
    if until is None or issued is None or begins is None:
        return Unproven("identity_malformed")
    if until <= moment:
        return Unproven("identity_expired")
    if max(issued, begins) > moment + CLOCKS_DIFFER:
        return Unproven("identity_not_yet")
    if until - min(issued, moment) > LONGEST_LIFE or until - moment > LONGEST_LIFE:
        return Unproven("identity_too_long")
    if not _is_meant(claims, audience):
        return Unproven("identity_wrong_deployment")
    customer, name = claims["sub"], claims.get("name", "")
    if not _is_plain(customer, MAX_SUBJECT) or not customer.strip():
        return Unproven("identity_subject")
    said = {name: claims[name] for name in ("email", "phone") if _is_plain(claims.get(name), MAX_CONTACT)}
    attributes = claims.get("attributes")
    attributes = attributes if isinstance(attributes, dict) else {}
    name = name if _is_plain(name, MAX_NAME) else ""
    return Identity(customer, name, until, key.gate, **said, attributes=attributes)


def _is_meant(claims: Mapping[str, object], audience: str) -> bool:
    """`aud` says for whom a token was made; one without it names the deployment as its `iss`."""
    named = claims["aud"] if "aud" in claims else claims.get("iss")
    return audience in named if isinstance(named, list) else named == audience


def _moment(seconds: object) -> datetime | None:
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0 <= seconds < LAST_SECOND:
        return None
    return datetime.fromtimestamp(seconds, UTC)


def _is_plain(text: object, longest: int) -> bool:
    return isinstance(text, str) and len(text) <= longest and text == text.strip() and not has_hidden_characters(text)
