"""Connections over HTTP, and how a member's secret comes in (contract interfaces; spec 5.10.1)."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from rest_framework import serializers
from rest_framework.request import Request

from apps.connections import pending
from apps.tenants.rest import staff_caller
from kernel.tenancy import tenant_scope


class StaffSecretRequest(serializers.Serializer[Any]):
    """How long it may be is said in bytes, by the room."""

    value = serializers.CharField(trim_whitespace=False)


def store_for_connection(request: Request, ref_id: UUID) -> None:
    """The member whose login this request carries gives what a set-up asked for."""
    caller = staff_caller(request)
    given = StaffSecretRequest(data=request.data)
    given.is_valid(raise_exception=True)
    with tenant_scope(caller.tenant_id):
        pending.store(ref_id, given.validated_data["value"], user=caller.user)
