"""Checks before changes to passwords, keys and passkeys: the password again, and the origin of passkeys."""

from __future__ import annotations

from urllib.parse import urlsplit

from django.http import HttpRequest
from django.utils.translation import gettext as _

from apps.console.members import StaffRequest
from apps.console.pages.login import ratelimit
from apps.tenants.addresses import console_origin
from kernel.error_codes import ErrorCode
from kernel.errors import SilasError
from kernel.ratelimit.addresses import address_of


def passkey_origin(request: HttpRequest) -> tuple[str, str]:
    """Return the host that passkeys are bound to and the whole origin."""
    origin = console_origin(request)
    return urlsplit(origin).hostname or "", origin


def require_password(request: StaffRequest) -> None:
    """Raises `SilasError`: `too_many_attempts` 429, `wrong_password` 403."""
    user, address = request.user, address_of(request)
    if wait := ratelimit.wait_before(address, user.email):
        raise SilasError(ErrorCode.TOO_MANY_ATTEMPTS, _("Too many attempts. Wait %(time)s.") % {"time": wait.words})
    if not user.check_password(request.POST.get("password", "")):
        raise SilasError(ErrorCode.WRONG_PASSWORD, _("Wrong password. Nothing was changed."))
    ratelimit.password_was_right(address, user.email)
