"""Register passkeys that log people in, ask for one, and verify its answer.

Always holds: a challenge belongs to the login session that asked and to one purpose, is good once and for a few
minutes; the device has made sure of its person; a counter that runs backwards is refused. The checks themselves are
py_webauthn's. The passkeys that stand behind approvals are others, of one tenant (ADR 49).
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterable
from typing import Any, TypeVar
from uuid import UUID

from django.conf import settings
from django.contrib.sessions.backends.base import SessionBase
from django.core.cache import cache
from django.db import transaction

from apps.audit.enums import AuditEvent
from apps.tenants.members import record_in_all_tenants
from apps.tenants.models import LoginPasskey, User
from apps.tenants.second_factors import codes_left, forget_needless_codes, make_recovery_codes
from kernel import webauthn
from kernel.canonical import sha256_hex
from kernel.clock import now
from kernel.error_codes import ErrorCode
from kernel.errors import NotFound, SilasError
from kernel.language import gettext

T = TypeVar("T")

_ASKED = "login_passkey_asked"
_MOST_PASSKEYS = 20
_REGISTER, _LOG_IN = "register", "log_in"


class NotBelieved(SilasError):
    def __init__(self, message: str, code: ErrorCode = ErrorCode.PASSKEY_REFUSED) -> None:
        super().__init__(code, message)


def passkeys_of(user: User) -> list[LoginPasskey]:
    return list(LoginPasskey.objects.filter(user_id=user.pk))


def begin_registration(session: SessionBase, user: User, *, rp_id: str, origin: str) -> dict[str, object]:
    """What `navigator.credentials.create` is called with. Raises `SilasError`: `passkey_needs_a_name`,
    `too_many_passkeys` 409."""
    _require_name(rp_id)
    known = passkeys_of(user)
    if len(known) >= _MOST_PASSKEYS:
        raise SilasError(
            ErrorCode.TOO_MANY_PASSKEYS,
            gettext("You have too many passkeys. Remove one that you no longer use first."),
        )
    return webauthn.registration_options(
        user=user,
        challenge=_ask(session, _REGISTER, user=user, rp_id=rp_id, origin=origin),
        credential_ids=[one.credential_id for one in known if one.rp_id == rp_id],
        resident=True,
        rp_id=rp_id,
        rp_name=settings.PASSKEY_RP_NAME,
        timeout=settings.PASSKEY_SECONDS * 1000,
    )


def finish_registration(session: SessionBase, user: User, *, name: str, credential: str) -> list[str]:
    """Believe a new passkey; the recovery codes that come with a person's first factor, else nothing.

    Raises `NotBelieved` 409, `SilasError("passkey_known")` 409.
    """
    asked = _spend(session, _REGISTER, credential, user=user)
    found = _believed(lambda: webauthn.verify_registration(credential, **_expected(asked)))
    credential_id = webauthn.base64url_encode(found.credential_id)
    with transaction.atomic():
        _, is_new = LoginPasskey.objects.get_or_create(
            credential_id=credential_id,
            defaults={
                "user_id": user.pk,
                "name": name.strip()[:60] or "Passkey",
                "public_key": found.credential_public_key,
                "rp_id": asked["rp_id"],
                "sign_count": found.sign_count,
                "created_at": now(),
            },
        )
        if not is_new:
            raise SilasError(ErrorCode.PASSKEY_KNOWN, gettext("This passkey is already registered."))
        record_in_all_tenants(user, AuditEvent.SECOND_FACTOR_ADDED, data={"factor": "passkey"})
        return [] if codes_left(user) else make_recovery_codes(user)


def remove(passkey_id: UUID, *, user: User) -> None:
    """Raises `NotFound` for a foreign one."""
    with transaction.atomic():
        removed, _ = LoginPasskey.objects.filter(pk=passkey_id, user_id=user.pk).delete()
        if not removed:
            raise NotFound()
        forget_needless_codes(user)
        record_in_all_tenants(user, AuditEvent.SECOND_FACTOR_REMOVED, data={"factor": "passkey"})


def begin_login(session: SessionBase, *, rp_id: str, origin: str, user: User | None = None) -> dict[str, object]:
    """What `navigator.credentials.get` is called with: of `user` after their password, of anybody without."""
    _require_name(rp_id)
    known: Iterable[str] = ()
    if user is not None:
        known = [one.credential_id for one in passkeys_of(user) if one.rp_id == rp_id]
        if not known:
            raise SilasError(ErrorCode.PASSKEY_ELSEWHERE, gettext("You have no passkey for this website."))
    return webauthn.authentication_options(
        challenge=_ask(session, _LOG_IN, user=user, rp_id=rp_id, origin=origin),
        credential_ids=known,
        rp_id=rp_id,
        timeout=settings.PASSKEY_SECONDS * 1000,
    )


def finish_login(session: SessionBase, *, credential: str, user: User | None = None) -> User:
    """Whose passkey answered; of `user` where one was named. Raises `NotBelieved` 409."""
    asked = _spend(session, _LOG_IN, credential, user=user)
    passkey = _passkey_of(credential, user)
    found = _believed(
        lambda: webauthn.verify_authentication(
            credential,
            credential_public_key=bytes(passkey.public_key),
            credential_current_sign_count=0,  # `_count` looks at it
            **_expected(asked),
        )
    )
    _count(passkey, found.new_sign_count)
    return passkey.user


def _ask(session: SessionBase, purpose: str, *, user: User | None, rp_id: str, origin: str) -> bytes:
    challenge = os.urandom(32)
    session[_ASKED] = {
        "purpose": purpose,
        "user": str(user.pk) if user is not None else "",
        "challenge": webauthn.base64url_encode(challenge),
        "rp_id": rp_id,
        "origin": origin,
        "until": time.time() + settings.PASSKEY_SECONDS,
    }
    return challenge


def _spend(session: SessionBase, purpose: str, answered: str, *, user: User | None) -> dict[str, Any]:
    """Spend and return the session's last challenge, if this answers it and it is unanswered."""
    # Taken out before it is checked: a wrong answer spends the challenge too.
    asked: dict[str, Any] = session.pop(_ASKED, {})
    try:
        signed = webauthn.base64url_encode(webauthn.read_challenge(answered))
    except ValueError:
        raise NotBelieved(gettext("We couldn't read the passkey's response.")) from None
    wanted = (purpose, str(user.pk) if user is not None else "", signed)
    if (asked.get("purpose"), asked.get("user"), asked.get("challenge")) != wanted or asked["until"] < time.time():
        raise NotBelieved(gettext("That took too long. Try again."))
    # Two requests at once may both have read the session before either saved it; the cache lets one of them through.
    if not cache.add(f"login_passkey:{sha256_hex(signed)}", 1, settings.PASSKEY_SECONDS + 60):
        raise NotBelieved(gettext("This request was already answered."))
    return asked


def _expected(asked: dict[str, Any]) -> dict[str, Any]:
    return {
        "expected_challenge": webauthn.base64url_decode(asked["challenge"]),
        "expected_rp_id": asked["rp_id"],
        "expected_origin": asked["origin"],
    }


def _passkey_of(answered: str, user: User | None) -> LoginPasskey:
    mine = LoginPasskey.objects.select_related("user").filter(user__is_active=True)
    mine = mine.filter(user_id=user.pk) if user is not None else mine
    # The id is the browser's word: PostgreSQL refuses a NUL, and no id is longer.
    found = mine.filter(credential_id=str(json.loads(answered).get("id", ""))[:1400].replace("\0", "")).first()
    if found is None:
        raise NotBelieved(gettext("This passkey isn't registered here."))
    return found


def _believed(verify: Callable[[], T]) -> T:
    """Return the library's result. The input is hostile, and every exception is a refusal."""
    try:
        return verify()
    except Exception as error:
        raise NotBelieved(gettext("We couldn't verify the passkey.")) from error


def _count(passkey: LoginPasskey, counted: int) -> None:
    """Check the counter: if it does not rise, the key was copied; authenticators without a counter always send 0."""
    if (counted or passkey.sign_count) and counted <= passkey.sign_count:
        raise NotBelieved(gettext("This passkey may have been copied, so it was refused."), ErrorCode.PASSKEY_COUNTER)
    # By the counter that was read: of two logins at once with one copied key only one counts.
    unchanged = LoginPasskey.objects.filter(pk=passkey.pk, sign_count=passkey.sign_count)
    if not unchanged.update(sign_count=counted, last_used_at=now()):
        raise NotBelieved(
            gettext("This passkey was used at the same time elsewhere. Try again."), ErrorCode.PASSKEY_COUNTER
        )


def _require_name(rp_id: str) -> None:
    if not webauthn.is_domain_name(rp_id):
        message = gettext(
            "Passkeys need a domain name. Open the console at its domain name or at localhost, not at an IP address."
        )
        raise SilasError(ErrorCode.PASSKEY_NEEDS_A_NAME, message)
