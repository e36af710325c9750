"""Set a new password with a link that works once and for an hour.

The link is Django's signed token over what changes with its use: the password, and the last login. Setting the
password ends every login of the person. What their second factor is stays, and is asked next.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.contrib.auth.tokens import PasswordResetTokenGenerator
from django.db import transaction
from django.http import HttpRequest
from django.urls import reverse
from django.utils.encoding import force_bytes
from django.utils.http import base36_to_int, urlsafe_base64_decode, urlsafe_base64_encode

from apps.audit.enums import AuditEvent
from apps.tenants import logins
from apps.tenants.members import record_in_all_tenants
from apps.tenants.models import User
from apps.tenants.services import set_first_password

GOOD_FOR = timedelta(hours=1)


class _ResetTokens(PasswordResetTokenGenerator):
    """Another salt than a welcome's: neither link is the other."""

    key_salt = "apps.tenants.resets"

    def check_token(self, user: User | None, token: Any) -> bool:
        # Django's own limit is a setting for all of its tokens, in days.
        return super().check_token(user, token) and self._age(token) <= GOOD_FOR.total_seconds()

    def _age(self, token: str) -> int:
        made = base36_to_int(token.split("-")[0])
        return self._num_seconds(self._now()) - made

    def _now(self) -> datetime:
        return datetime.now()  # noqa: DTZ005 (Django counts in local time on both ends)


tokens = _ResetTokens()


def path_of(user: User) -> str:
    return reverse("console-reset", args=[urlsafe_base64_encode(force_bytes(user.pk)), tokens.make_token(user)])


def person_of(who: str, token: str) -> User | None:
    """Whose link this is; None for every dead one."""
    try:
        # Any bytes may come in the address.
        user = User.objects.filter(pk=UUID(urlsafe_base64_decode(who).decode()), is_active=True).first()
    except ValueError:
        return None
    return user if user and tokens.check_token(user, token) else None


def set_new_password(user: User, password: str) -> bool:
    """Whether this call set it: of two that come with one link, only the first does."""
    with transaction.atomic():
        if not set_first_password(user, password):
            return False
        logins.end_all(user)
        record_in_all_tenants(user, AuditEvent.PASSWORD_CHANGED, data={"by": "letter"})
        return True


def change_password(request: HttpRequest, user: User, password: str) -> None:
    """Change the password of a person who has just entered the old one; every other login ends."""
    with transaction.atomic():
        user.set_password(password)
        user.save(update_fields=["password"])
        logins.keep_after_password_change(request, user)
        record_in_all_tenants(user, AuditEvent.PASSWORD_CHANGED, data={"by": "person"})
