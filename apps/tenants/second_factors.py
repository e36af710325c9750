"""Verify a second factor: an authenticator app's codes (RFC 6238) and recovery codes.

Always holds: a code's step is taken by one conditional update that only goes forward, so that no code is good twice,
by rivals neither; a recovery code is good once. Secrets stand sealed with the key that workers do not have, recovery
codes as hashes. The console limits the attempts.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from hmac import compare_digest

import pyotp
import segno
from django.conf import settings
from django.db import transaction

from apps.audit.enums import AuditEvent
from apps.tenants import logins
from apps.tenants.members import record_in_all_tenants
from apps.tenants.models import LoginPasskey, RecoveryCode, Totp, User
from kernel.canonical import sha256_hex
from kernel.clock import now
from kernel.error_codes import ErrorCode
from kernel.errors import SilasError
from kernel.secrets_key import seal_secret, unseal_secret

RECOVERY_CODES = 10
_STEP_SECONDS = 30
# A clock may be half a minute early or late.
_STEPS_ASIDE = (0, -1, 1)
# Without letters and digits that are read as each other. 50 bits a code: a hash of it is not guessed.
_LETTERS = "abcdefghjkmnpqrstuvwxyz23456789"


@dataclass(frozen=True)
class Setup:
    """What an authenticator app is told: `qr` is an inline SVG of the `otpauth://` address."""

    secret: str
    qr: str


def begin_totp(user: User) -> None:
    """A new secret that counts for nothing until a code of it was typed. Raises `SilasError("totp_exists")` 409."""
    row = Totp.objects.filter(user_id=user.pk).first()
    if row is not None and row.confirmed_at is not None:
        raise SilasError(ErrorCode.TOTP_EXISTS)
    sealed = seal_secret(pyotp.random_base32().encode(), belongs_to=_seal_of(user))
    Totp.objects.update_or_create(
        user_id=user.pk, confirmed_at=None, defaults={"sealed_secret": sealed, "last_step": 0, "created_at": now()}
    )


def setup_of(user: User) -> Setup | None:
    """What is shown while an app is being set up; None before and after."""
    row = Totp.objects.filter(user_id=user.pk, confirmed_at=None).first()
    if row is None:
        return None
    secret = _secret(row)
    address = pyotp.TOTP(secret).provisioning_uri(name=user.email, issuer_name=settings.PASSKEY_RP_NAME)
    return Setup(secret, segno.make(address, micro=False).svg_inline(scale=5, border=4, light="#fff", dark="#000"))


def confirm_totp(user: User, code: str) -> list[str]:
    """The app counts from now on; the recovery codes that come with a person's first factor, else nothing.

    Raises `SilasError`: `wrong_code` 409, `no_setup` 409.
    """
    with transaction.atomic():
        row = Totp.objects.select_for_update(no_key=True).filter(user_id=user.pk, confirmed_at=None).first()
        if row is None:
            raise SilasError(ErrorCode.NO_SETUP)
        step = _step_of(row, code)
        if step is None:
            raise SilasError(ErrorCode.WRONG_CODE)
        Totp.objects.filter(pk=row.pk).update(confirmed_at=now(), last_step=step)
        record_in_all_tenants(user, AuditEvent.SECOND_FACTOR_ADDED, data={"factor": "totp"})
        return [] if codes_left(user) else make_recovery_codes(user)


def use_totp(user: User, code: str) -> bool:
    """Use a code of the person's app; False if it is wrong or was used before."""
    row = Totp.objects.filter(user_id=user.pk, confirmed_at__isnull=False).first()
    step = _step_of(row, code) if row else None
    if step is None:
        return False
    return (
        Totp.objects.filter(user_id=user.pk, confirmed_at__isnull=False, last_step__lt=step).update(last_step=step) == 1
    )


def use_recovery_code(user: User, code: str) -> bool:
    """Use one of the person's recovery codes; False if it is wrong or was used before."""
    hashed = _hash(user, code)
    with transaction.atomic():
        used = RecoveryCode.objects.filter(user_id=user.pk, hashed=hashed, used_at=None).update(used_at=now()) == 1
        if used:
            record_in_all_tenants(user, AuditEvent.RECOVERY_CODE_USED, data={"left": codes_left(user)})
        return used


def make_recovery_codes(user: User) -> list[str]:
    """Ten new ones, shown this once; the old ones are void."""
    made = [
        "-".join("".join(secrets.choice(_LETTERS) for _ in range(5)) for _ in range(2)) for _ in range(RECOVERY_CODES)
    ]
    with transaction.atomic():
        RecoveryCode.objects.filter(user_id=user.pk).delete()
        RecoveryCode.objects.bulk_create(RecoveryCode(user_id=user.pk, hashed=_hash(user, one)) for one in made)
        record_in_all_tenants(user, AuditEvent.RECOVERY_CODES_MADE, data={"codes": len(made)})
    return made


def codes_left(user: User) -> int:
    return RecoveryCode.objects.filter(user_id=user.pk, used_at=None).count()


def has_totp(user: User) -> bool:
    return Totp.objects.filter(user_id=user.pk, confirmed_at__isnull=False).exists()


def remove_totp(user: User) -> None:
    """The app counts no more; without any factor left, recovery codes are nothing either."""
    with transaction.atomic():
        removed, _ = Totp.objects.filter(user_id=user.pk, confirmed_at__isnull=False).delete()
        if removed:
            forget_needless_codes(user)
            record_in_all_tenants(user, AuditEvent.SECOND_FACTOR_REMOVED, data={"factor": "totp"})


def remove_all(user: User) -> None:
    """Remove all factors of a person who lost them, by the platform's operator; every login ends."""
    with transaction.atomic():
        for model in (Totp, LoginPasskey, RecoveryCode):
            model.objects.filter(user_id=user.pk).delete()
        logins.end_all(user)
        record_in_all_tenants(user, AuditEvent.SECOND_FACTOR_REMOVED, data={"factor": "all"}, actor="system")


def forget_needless_codes(user: User) -> None:
    if not has_totp(user) and not LoginPasskey.objects.filter(user_id=user.pk).exists():
        RecoveryCode.objects.filter(user_id=user.pk).delete()


def _step_of(row: Totp, code: str) -> int | None:
    """To which step of time the code belongs: this one, or one beside it."""
    typed, totp = "".join(code.split()), pyotp.TOTP(_secret(row))
    here = int(now().timestamp()) // _STEP_SECONDS
    # In constant time, so that a code is not guessed digit by digit.
    steps = [here + aside for aside in _STEPS_ASIDE]
    return next((step for step in steps if compare_digest(totp.generate_otp(step).encode(), typed.encode())), None)


def _secret(row: Totp) -> str:
    return unseal_secret(bytes(row.sealed_secret), belongs_to=_seal_of(row.user)).decode()


def _seal_of(user: User) -> str:
    return f"totp:{user.pk}"


def _hash(user: User, code: str) -> str:
    plain = "".join(letter for letter in code.lower() if letter.isalnum())
    return sha256_hex(f"recovery:{user.pk}:{plain}")
