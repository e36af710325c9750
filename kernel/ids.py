"""Read an id that came from outside: an address, a form, a model's argument."""

from __future__ import annotations

from uuid import UUID

from kernel.errors import NotFound


def parse_id(given: object) -> UUID | None:
    """Return the id; None for anything that is none."""
    try:
        return UUID(str(given))
    except ValueError:
        return None


def require_id(given: object) -> UUID:
    """Return the id. Raises `NotFound` for anything that is none."""
    found = parse_id(given)
    if found is None:
        raise NotFound()
    return found
