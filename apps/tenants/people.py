"""Who belongs to a tenant, as its owners see it, and what people say of themselves."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.db import transaction

from apps.audit.enums import AuditEvent
from apps.tenants.models import ApiKey, Login, Membership
from apps.tenants.persons import record_everywhere
from apps.tenants.second_factors import has_factor_among
from kernel.errors import NotFound


def members_here() -> list[Membership]:
    """The scope's members with their people, by name; `has_factor` and `last_seen` say how they come in."""
    rows = list(Membership.objects.select_related("user"))
    ids = [row.user_id for row in rows]
    protected = has_factor_among(ids)
    seen: dict[UUID, Any] = {}
    for user_id, moment in Login.objects.filter(user_id__in=ids).order_by("seen_at").values_list("user_id", "seen_at"):
        seen[user_id] = moment
    for row in rows:
        row.__dict__.update(has_factor=row.user_id in protected, last_seen=seen.get(row.user_id) or row.user.last_login)
    return sorted(rows, key=lambda row: row.user.display_name.lower())


def member_here(membership_id: UUID) -> Membership:
    """Raises `NotFound` for a foreign one."""
    found: Membership | None = Membership.objects.select_related("user").filter(pk=membership_id).first()
    if found is None:
        raise NotFound("member")
    return found


def api_keys_here() -> list[ApiKey]:
    """The scope's keys: those that are good first, the newest first."""
    return sorted(ApiKey.objects.order_by("-created_at"), key=lambda key: key.revoked_at is not None)


def api_key_here(key_id: UUID) -> ApiKey:
    """Raises `NotFound` for a foreign one."""
    found: ApiKey | None = ApiKey.objects.filter(pk=key_id).first()
    if found is None:
        raise NotFound("API key")
    return found


def change_name(user: Any, name: str) -> None:
    """How colleagues see the person; empty: by their address."""
    first, _, last = " ".join(name.replace("\0", "").split())[:150].partition(" ")
    with transaction.atomic():
        user.first_name, user.last_name = first, last
        user.save(update_fields=["first_name", "last_name"])
        record_everywhere(user, AuditEvent.NAME_CHANGED)
