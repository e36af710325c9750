"""Which of a person's tenants does this login open? Asked by the console, its socket, the REST API and the
administration, so that none of them is a way around the others.

A login by a company's own provider opens that company and nothing else: whoever runs the provider says who comes in,
and may say so for their own company only. A tenant that requires a second factor stays shut to members without one.
"""

from __future__ import annotations

from typing import Any

from apps.tenants.models import LoginPasskey, Membership, Tenant, Totp
from apps.tenants.queries import memberships_of
from kernel.errors import SilasError

# What a login session remembers: the only tenant it opens (empty: all), how it came about, and its `Login`.
ONLY_TENANT, METHOD, LOGIN = "login_only_tenant", "login_method", "login_id"
SECOND_FACTOR_REQUIRED = "second_factor_required"


def memberships_in(session: Any, user: Any) -> list[Membership]:
    """The user's memberships that this login session opens, with their tenants, oldest first."""
    mine, only = memberships_of(user), session.get(ONLY_TENANT, "")
    return [one for one in mine if str(one.tenant_id) == only] if only else mine


def has_second_factor(user: Any) -> bool:
    confirmed = Totp.objects.filter(user_id=user.pk, confirmed_at__isnull=False)
    return confirmed.exists() or LoginPasskey.objects.filter(user_id=user.pk).exists()


def lacks_second_factor(session: Any, user: Any, tenant: Tenant) -> bool:
    """Whether the tenant wants one that this person does not have. A company's provider asks for its own."""
    return tenant.second_factor_required and not session.get(ONLY_TENANT) and not has_second_factor(user)


def require_second_factor(session: Any, user: Any, tenant: Tenant) -> None:
    """Raises 403 `second_factor_required`."""
    if lacks_second_factor(session, user, tenant):
        message = f"{tenant.name} asks for a second factor. Set one up under My account first."
        raise SilasError(SECOND_FACTOR_REQUIRED, message, status=403)
