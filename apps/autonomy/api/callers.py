"""In whose name does a caller act, and what is common to every answer?"""

from __future__ import annotations

from typing import Any

from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response

from apps.autonomy import queries
from apps.autonomy.schemas import NotSpawned, Spawn, Spawned
from apps.tenants.api_auth import Caller
from apps.tenants.enums import Role
from apps.tenants.models import Membership
from kernel.errors import SilasError


def acting_user(caller: Caller) -> Any:
    """The member, or for an API key the oldest owner, first of those who allowed that tasks run; inside a scope.

    An API key is made by owners and may what they may; whatever it does stands in the log under its own name.
    """
    if caller.user is not None:
        return caller.user
    owners = [one.user for one in Membership.objects.filter(role=Role.OWNER).select_related("user").order_by("pk")]
    allowed = queries.opted_in_users([owner.pk for owner in owners])
    found = next((owner for owner in owners if owner.pk in allowed), None) or next(iter(owners), None)
    if found is None:
        raise SilasError("not_opted_in", "There is no owner for whom this could run.", status=403)
    found.acts_as = caller.actor
    return found


def require_switched_on() -> None:
    """Raises 503 `scheduler_disabled`: nothing begins, also nothing by hand (contract autonomy B2)."""
    if not queries.autonomy_settings().enabled:
        raise SilasError("scheduler_disabled", "What runs unattended is switched off for this company.", status=503)


def validated(shape: type[serializers.Serializer[Any]], given: Any) -> dict[str, Any]:
    """What was asked, in shape. Raises 400 `invalid`."""
    asked = shape(data=given)
    asked.is_valid(raise_exception=True)
    found: dict[str, Any] = asked.validated_data
    return found


def answer(data: Any, code: int = status.HTTP_200_OK) -> Response:
    return Response(data, status=code, headers={"Cache-Control": "no-store"})


def validated_query(request: Request, shape: type[serializers.Serializer[Any]]) -> dict[str, Any]:
    return validated(shape, request.query_params)


def spawn_error(spawn: Spawn) -> SilasError | None:
    """Why nothing began; None when a session was queued. Raised only outside of the scope that wrote it down."""
    match spawn:
        case NotSpawned(code=code, reason=reason):
            return SilasError(code.value, reason, status=409)
        case Spawned():
            return None
