"""Is it still this person, and where are they? What pages about passwords, keys and passkeys ask first."""

from __future__ import annotations

from urllib.parse import urlsplit

from django.conf import settings
from django.http import HttpRequest

from apps.console import throttle
from apps.console.members import StaffRequest
from kernel.errors import SilasError


def place_of(request: HttpRequest) -> tuple[str, str]:
    """The name that passkeys are bound to, and the whole origin; a deployment behind a proxy may say what it is."""
    origin = settings.PASSKEY_ORIGIN or f"{request.scheme}://{request.get_host()}"
    return urlsplit(origin).hostname or "", origin


def require_password(request: StaffRequest) -> None:
    """Raises `SilasError`: `too_many_attempts` 429, `wrong_password` 403."""
    user, address = request.user, request.META.get("REMOTE_ADDR", "")
    if wait := throttle.wait_before(address, user.email):
        raise SilasError("too_many_attempts", f"Too many attempts. Wait {wait.words}.", status=429)
    if not user.check_password(request.POST.get("password", "")):
        raise SilasError("wrong_password", "That is not your password. Nothing was changed.", status=403)
    throttle.succeeded(address, user.email)
