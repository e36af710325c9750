"""Who is looking at a card or a conversation right now?

Told by open consoles, kept in the cache for a moment, forgotten by itself. It is company, nothing else: a cache that is
away means that nobody is seen, and never that anybody is held up.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any
from uuid import UUID

from django.core.cache import cache
from redis.exceptions import RedisError

# A console says every 20 seconds what it looks at; whoever missed two of them is gone.
SECONDS = 45


def look(tenant_id: UUID, thing_id: UUID, user_id: UUID) -> None:
    cache.set(_key(tenant_id, thing_id, user_id), 1, SECONDS)


def look_away(tenant_id: UUID, thing_id: UUID, user_id: UUID) -> None:
    cache.delete(_key(tenant_id, thing_id, user_id))


def lookers(tenant_id: UUID, thing_id: UUID, among: Iterable[Any]) -> list[Any]:
    """Those of the users who have this thing before them."""
    keys = {_key(tenant_id, thing_id, user.pk): user for user in among}
    try:
        found = cache.get_many(keys)
    except RedisError:
        return []
    return [user for key, user in keys.items() if key in found]


def _key(tenant_id: UUID, thing_id: UUID, user_id: UUID) -> str:
    return f"look:{tenant_id}:{thing_id}:{user_id}"
