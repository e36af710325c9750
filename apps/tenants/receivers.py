"""What does this room hear from Django? That somebody logged in or out, by whatever way."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.signals import user_logged_in, user_logged_out
from django.dispatch import receiver

from apps.tenants import logins


@receiver(user_logged_in)
def _logged_in(request: Any, user: Any, **_: Any) -> None:
    logins.begin(request, user)


@receiver(user_logged_out)
def _logged_out(request: Any, user: Any, **_: Any) -> None:
    if user is not None:
        logins.forget(request.session)
