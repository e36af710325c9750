"""Verify a site's signed token that identifies the visitor, and let it pass its gate.

The key decides how a token is checked, never the token. A valid token passes the gate that the key names in the way
every gate is passed (`levels.move`); the level ends with the token at the latest. An invalid one raises no level and
stops nobody from writing; the answer carries the reason. Attempts are counted like those of a script gate. Nothing of a
token is stored.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any
from uuid import UUID

import jwt

from apps.audit.enums import AuditEvent
from apps.audit.services import record
from apps.sessions import identity_rate_limit, levels, policy
from apps.sessions.levels import Passed
from apps.sessions.locks import lock_session
from apps.sessions.models import ChatSession
from apps.sessions.schemas import StartedSession
from apps.sessions.services import resumable, start_session
from apps.tenants.enums import IdentityAlgorithm
from apps.tenants.models import Deployment
from apps.tenants.queries import VerifyingKey, verifying_keys
from kernel.clock import now
from kernel.ratelimit.fixed_window import Limit
from kernel.unicode_safety import has_hidden_characters

if TYPE_CHECKING:
    from jwt.types import Options

LONGEST_LIFE = timedelta(hours=1)
# How far the site's clock may go before ours. Never beyond the end that a token names itself.
CLOCKS_DIFFER = timedelta(seconds=30)
LAST_SECOND = datetime(9999, 1, 1, tzinfo=UTC).timestamp()
MAX_TOKEN, MAX_SUBJECT, MAX_NAME = 8192, 80, 120
# A level that stands already is put off only if that wins as much; a page that comes back often writes nothing.
WORTH_A_WRITE = timedelta(seconds=60)
# Times are ours to judge, by our clock; and who is meant stands in `aud` or `iss` (ADR 35).
_OPTIONS: Options = {
    "require": ["exp", "sub"],
    "verify_exp": False,
    "verify_nbf": False,
    "verify_iat": False,
    "verify_aud": False,
    "verify_iss": False,
    "verify_sub": False,
    "verify_jti": False,
}


@dataclass(frozen=True)
class Identity:
    """What a good token says: which of the tenant's customers this is, until when, and which gate that passes."""

    customer: str
    name: str
    until: datetime
    gate: str


@dataclass(frozen=True)
class Unproven:
    """Why a token is not believed; one of the codes of docs/access.md."""

    code: str


@dataclass(frozen=True)
class Known:
    """What a token is judged by: the conversation that is resumed, and the deployment's keys."""

    session_id: UUID | None
    keys: Sequence[VerifyingKey]


@dataclass(frozen=True)
class Named:
    """What a token came to; `counted` is what to give back when it is believed."""

    found: Identity | Unproven
    counted: tuple[Limit, ...] = ()


def known(deployment: Deployment, *, resume_token: str) -> Known:
    """Inside the tenant's scope."""
    before = resumable(deployment, resume_token)
    return Known(before.pk if before else None, verifying_keys(deployment.pk))


def look(deployment: Deployment, token: str, known: Known) -> Named:
    """Count the try, and check the token. Outside of any scope: tries are counted in Redis."""
    counted = identity_rate_limit.count_signed(deployment.tenant_id, known.session_id) if known.keys else ()
    if isinstance(counted, str):
        return Named(Unproven(counted))
    return Named(read(token, known.keys, audience=deployment.public_key), counted)


def start(
    deployment: Deployment, named: Named, *, resume_token: str = "", locale: str = ""
) -> tuple[StartedSession, str]:
    """Begin or resume a conversation for whom the token names, inside the tenant's scope; the answer's second half is
    why it was not believed, or empty. Somebody else's conversation is not resumed: theirs begins anew."""
    before = resumable(deployment, resume_token)
    if before is not None:
        # Of two customers who are named for it at once, the second finds the first one's.
        lock_session(before.pk)
    customer = named.found.customer if isinstance(named.found, Identity) else ""
    started = start_session(deployment, resume_token=resume_token, locale=locale, customer=customer)
    return started, _settle(started.session_id, deployment, named.found)


def believed(named: Named) -> None:
    """A token that passed its gate, committed, was no try at guessing."""
    identity_rate_limit.take_back(named.counted)


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
    return Identity(customer, name if _is_plain(name, MAX_NAME) else "", until, key.gate)


def _is_meant(claims: Mapping[str, Any], audience: str) -> bool:
    """`aud` says for whom a token was made; one without it names the deployment as its `iss`."""
    named = claims["aud"] if "aud" in claims else claims.get("iss")
    return audience in named if isinstance(named, list) else named == audience


def _moment(seconds: Any) -> datetime | None:
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0 <= seconds < LAST_SECOND:
        return None
    return datetime.fromtimestamp(seconds, UTC)


def _is_plain(text: Any, longest: int) -> bool:
    return isinstance(text, str) and len(text) <= longest and text == text.strip() and not has_hidden_characters(text)


def _settle(session_id: UUID, deployment: Deployment, found: Identity | Unproven) -> str:
    """Move the level, or write down that it stays; the reason, or empty."""
    if isinstance(found, Identity):
        return "" if _pass(lock_session(session_id), deployment, found) else "identity_gate_unused"
    if found.code in identity_rate_limit.NOT_CHECKED:
        data = {"by": identity_rate_limit.NOT_CHECKED[found.code]}
        record(AuditEvent.IDENTITY_THROTTLED, subject=f"session:{session_id}", data=data)
    elif found.code != "identity_key_missing":
        data = {"by": "signed", "reason": found.code}
        record(AuditEvent.IDENTITY_FAILED, subject=f"session:{session_id}", data=data)
    return found.code


def _pass(session: ChatSession, deployment: Deployment, found: Identity) -> bool:
    """Whether some level asks for the gate; then it is passed, as a script's would be."""
    rules = policy.load(deployment).levels
    if not any(found.gate in level.requires for level in rules.values()):
        return False
    passed = Passed(found.gate, found.customer, found.name, found.until)
    if levels.is_worth_moving(session, rules, passed, gain=WORTH_A_WRITE):
        levels.move(session, rules, [passed])
    return True
