"""What the API views share: the acting user, validation, responses and refusals."""

from __future__ import annotations

from typing import Any

from apps.autonomy import queries
from apps.autonomy.schemas import NotSpawned, Spawn, Spawned
from apps.tenants.api_auth import Caller
from apps.tenants.enums import Role
from apps.tenants.models import Membership
from kernel.error_codes import ErrorCode
from kernel.errors import SilasError
from kernel.language import gettext


def acting_user(caller: Caller) -> Any:
    """The member, or for an API key the oldest owner, preferably one who opted in. Inside a scope.

    Owners create API keys, and a key may do what they may; the log names the key as the actor.
    """
    if caller.user is not None:
        return caller.user
    owners = [
        membership.user
        for membership in Membership.objects.filter(role=Role.OWNER).select_related("user").order_by("pk")
    ]
    opted_in = queries.opted_in_users([owner.pk for owner in owners])
    user = next((owner for owner in owners if owner.pk in opted_in), None) or next(iter(owners), None)
    if user is None:
        raise SilasError(ErrorCode.NOT_OPTED_IN, gettext("This task has no owner to run for."))
    user.acts_as = caller.actor
    return user


def require_switched_on() -> None:
    """Raises 503 `scheduler_disabled`: nothing starts, not even manually (contract autonomy B2)."""
    if not queries.autonomy_settings().enabled:
        raise SilasError(ErrorCode.SCHEDULER_DISABLED)


def spawn_error(spawn: Spawn) -> SilasError | None:
    """Why no session was queued, or None. Raise it outside of the scope, or the recorded refusal is rolled back."""
    match spawn:
        case NotSpawned(code=code, reason=reason):
            return SilasError(ErrorCode(code.value), reason, status=409)
        case Spawned():
            return None
