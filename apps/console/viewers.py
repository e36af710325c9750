"""Which members have a card or a conversation open right now.

Open consoles report it and the cache keeps it for a moment. It is only shown, never enforced: without the cache no
viewers are shown and nothing is blocked.
"""

from __future__ import annotations

from collections.abc import Iterable
from uuid import UUID

from django.core.cache import cache
from redis.exceptions import RedisError

from apps.tenants.models import User

# Consoles report every 20 seconds; a member who misses two reports counts as gone.
SECONDS = 45


def mark_viewing(tenant_id: UUID, object_id: UUID, user_id: UUID) -> None:
    cache.set(_key(tenant_id, object_id, user_id), 1, SECONDS)


def mark_left(tenant_id: UUID, object_id: UUID, user_id: UUID) -> None:
    cache.delete(_key(tenant_id, object_id, user_id))


def viewers_of(tenant_id: UUID, object_id: UUID, among: Iterable[User]) -> list[User]:
    """Return those of the users who have this card or conversation open."""
    keys = {_key(tenant_id, object_id, user.pk): user for user in among}
    try:
        present = cache.get_many(keys)
    except RedisError:
        return []
    return [user for key, user in keys.items() if key in present]


def _key(tenant_id: UUID, object_id: UUID, user_id: UUID) -> str:
    return f"look:{tenant_id}:{object_id}:{user_id}"
