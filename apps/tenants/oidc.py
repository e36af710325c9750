"""Log a person in with their company's provider: OpenID Connect, authorization code with PKCE.

Discovery, the code's exchange and the keys are fetched with a time-out, without redirects, from addresses outside of
the house only; what comes back is cut off beyond a size. The id_token is PyJWT's to verify: its signature, issuer,
audience, time and our nonce. No rows; no transaction is open while this waits.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
import secrets
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

import httpx2
import jwt
from django.conf import settings

from kernel.error_codes import ErrorCode
from kernel.errors import SilasError
from kernel.http.addresses import host_of
from kernel.http.client import open_client
from kernel.language import gettext

_SECONDS, _WHOLE_SECONDS, _MOST_BYTES = 5.0, 10.0, 256 * 1024
_ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "ES256", "ES384", "EdDSA")
_LEEWAY_SECONDS = 60


@dataclass(frozen=True)
class Claims:
    """Whom the provider vouches for."""

    subject: str
    email: str
    email_verified: bool
    name: str


@dataclass(frozen=True)
class Asked:
    """What a browser was sent away with; kept in its session until it is back."""

    state: str
    nonce: str
    verifier: str

    @staticmethod
    def anew() -> Asked:
        return Asked(*(secrets.token_urlsafe(32) for _ in range(3)))


def address_of(issuer: str, *, client_id: str, back: str, asked: Asked) -> str:
    """Where the browser goes to log in. Raises `SilasError("provider_unreachable")` 502."""
    endpoint = _endpoint(_discovered(issuer), "authorization_endpoint")
    challenge = base64.urlsafe_b64encode(hashlib.sha256(asked.verifier.encode()).digest()).rstrip(b"=").decode()
    query = urlencode(
        {
            "response_type": "code",
            "scope": "openid email profile",
            "client_id": client_id,
            "redirect_uri": back,
            "state": asked.state,
            "nonce": asked.nonce,
            "code_challenge": challenge,
            "code_challenge_method": "S256",
        }
    )
    return f"{endpoint}{'&' if '?' in endpoint else '?'}{query}"


def claims_for(issuer: str, *, client_id: str, secret: str, code: str, back: str, asked: Asked) -> Claims:
    """Who it is. Raises `SilasError`: `provider_unreachable` 502, `provider_refused` 403 for a bad code or token."""
    found = _discovered(issuer)
    answer = _fetched(
        _endpoint(found, "token_endpoint"),
        {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": back,
            "client_id": client_id,
            "client_secret": secret,
            "code_verifier": asked.verifier,
        },
    )
    token = answer.get("id_token")
    if not isinstance(token, str):
        raise _refused()
    said = _verified(token, issuer=issuer, client_id=client_id, keys=_fetched(_endpoint(found, "jwks_uri")))
    # Binds the token to this browser's request, so that one of another login cannot be put in its place.
    if not secrets.compare_digest(str(said.get("nonce", "")).encode(), asked.nonce.encode()):
        raise _refused()
    # A token for several clients is ours only if it was issued to us (OpenID Connect Core 3.1.3.7).
    if isinstance(said["aud"], list) and len(said["aud"]) > 1 and said.get("azp") != client_id:
        raise _refused()
    return Claims(
        subject=str(said["sub"])[:255],
        email=str(said.get("email") or "")[:254],
        # `is True`: the text "false" would count as well.
        email_verified=said.get("email_verified") is True,
        name=" ".join(str(said.get("name") or "").split()),
    )


def _verified(token: str, *, issuer: str, client_id: str, keys: Any) -> dict[str, object]:
    try:
        header = jwt.get_unverified_header(token)
        # Exactly one key: trying all of them would let the token choose what it is verified with.
        fitting = [key for key in jwt.PyJWKSet.from_dict(keys).keys if header.get("kid") in (None, key.key_id)]
        if header.get("alg") not in _ALGORITHMS or len(fitting) != 1:
            raise _refused()
        said: dict[str, object] = jwt.decode(
            token,
            fitting[0],
            # From our own list, never "none": the header is the sender's word (algorithm confusion).
            algorithms=[header["alg"]],
            audience=client_id,
            issuer=issuer,
            leeway=_LEEWAY_SECONDS,
            options={"require": ["exp", "iat", "aud", "iss", "sub"]},
        )
    except (jwt.PyJWTError, ValueError, TypeError, AttributeError, KeyError) as error:
        raise _refused() from error
    return said


def _discovered(issuer: str) -> dict[str, object]:
    """The provider's own description; one that is of another issuer is none."""
    found = _fetched(f"{issuer.rstrip('/')}/.well-known/openid-configuration")
    # A description that names another issuer could lead to that one's tokens (mix-up; OpenID Connect Discovery 4.3).
    if found.get("issuer") != issuer:
        raise _unreachable()
    return found


def _endpoint(found: dict[str, object], name: str) -> str:
    url = found.get(name)
    schemes = ("https", "http") if settings.LOGIN_PROVIDERS_PRIVATE else ("https",)
    if not isinstance(url, str) or not host_of(url, schemes=schemes):
        raise _unreachable()
    return url


def _fetched(url: str, form: dict[str, str] | None = None) -> dict[str, object]:
    """The JSON object at this address, posted to with `form`."""
    try:
        answer = asyncio.run(asyncio.wait_for(_requested(url, form), _WHOLE_SECONDS))
        found = json.loads(answer.content)
    except (httpx2.HTTPError, httpx2.InvalidURL, TimeoutError, ValueError, RecursionError) as error:
        raise _unreachable() from error
    if form is not None and 400 <= answer.status_code < 500:
        raise _refused()
    if answer.status_code != 200 or not isinstance(found, dict):
        raise _unreachable()
    return found


async def _requested(url: str, form: dict[str, str] | None) -> httpx2.Response:
    client = open_client(allow_private=settings.LOGIN_PROVIDERS_PRIVATE, max_bytes=_MOST_BYTES, step_seconds=_SECONDS)
    async with client:
        return await client.request(
            "GET" if form is None else "POST", url, data=form, headers={"Accept": "application/json"}
        )


def _unreachable() -> SilasError:
    message = gettext("Your company's login isn't responding correctly. Try again in a moment, or contact an owner.")
    return SilasError(ErrorCode.PROVIDER_UNREACHABLE, message)


def _refused() -> SilasError:
    message = gettext("We couldn't verify the response from your company's login. Nothing was changed. Try again.")
    return SilasError(ErrorCode.PROVIDER_REFUSED, message)
