"""Decide which of a user's tenants a login session may enter. Used by the console, its socket, the REST API and the
administration, so that none of them is a way around the others.

A login through a company's own provider enters that company only: the provider decides who logs in, and may decide it
for its own company alone. A tenant that requires a second factor is closed to members without one.
"""

from __future__ import annotations

from django.contrib.sessions.backends.base import SessionBase

from apps.tenants.models import LoginPasskey, Membership, Tenant, Totp, User
from apps.tenants.queries import memberships_of
from kernel.error_codes import ErrorCode
from kernel.errors import SilasError
from kernel.language import gettext

# Keys of the session: the only tenant it may enter (empty: all), the login method, and the id of its `Login`.
ONLY_TENANT, METHOD, LOGIN = "login_only_tenant", "login_method", "login_id"


def memberships_in(session: SessionBase, user: User) -> list[Membership]:
    """The user's memberships that this session may enter, with their tenants, oldest first."""
    memberships, only = memberships_of(user), session.get(ONLY_TENANT, "")
    return [row for row in memberships if str(row.tenant_id) == only] if only else memberships


def has_second_factor(user: User) -> bool:
    confirmed = Totp.objects.filter(user_id=user.pk, confirmed_at__isnull=False)
    return confirmed.exists() or LoginPasskey.objects.filter(user_id=user.pk).exists()


def lacks_second_factor(session: SessionBase, user: User, tenant: Tenant) -> bool:
    """Whether the tenant requires a second factor that the user does not have.

    A company's provider asks for its own.
    """
    # `ONLY_TENANT`: who came through the company's own provider has passed what that one asks for.
    return tenant.second_factor_required and not session.get(ONLY_TENANT) and not has_second_factor(user)


def require_second_factor(session: SessionBase, user: User, tenant: Tenant) -> None:
    """Raises 403 `second_factor_required`."""
    if lacks_second_factor(session, user, tenant):
        message = gettext("{name} requires two-factor authentication. Set it up under My account first.").format(
            name=tenant.name
        )
        raise SilasError(ErrorCode.SECOND_FACTOR_REQUIRED, message)
