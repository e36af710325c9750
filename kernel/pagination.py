"""Pages of a list, newest first or by the earliest time. A cursor names the last row of the page before, so that new
rows shift nothing."""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode
from datetime import datetime
from typing import TypeVar
from uuid import UUID

from django.db.models import Model, QuerySet

_Row = TypeVar("_Row", bound=Model)


def read_page(
    rows: QuerySet[_Row], *, before: str, limit: int, moment: str = "created_at", earliest_first: bool = False
) -> tuple[list[_Row], str]:
    """The latest rows by the time in column `moment`, or the earliest, and the cursor of the page after them, "" at the
    end.

    `before`: the cursor that the previous page returned. Anything else is ignored, see `is_cursor`.
    """
    beyond, same, sign = ("gte", "lte", "") if earliest_first else ("lte", "gte", "-")
    if last := _position(before):
        at, pk = last
        # By time and id: several rows may have the same time, and a page may end between them.
        rows = rows.filter(**{f"{moment}__{beyond}": at}).exclude(**{moment: at, f"pk__{same}": pk})
    found = list(rows.order_by(f"{sign}{moment}", f"{sign}pk")[: limit + 1])
    shown = found[:limit]
    return shown, _cursor(getattr(shown[-1], moment), shown[-1].pk) if len(found) > limit else ""


def is_cursor(text: str) -> bool:
    """True if a page may have returned this as its cursor."""
    return _position(text) is not None


def _cursor(at: datetime, pk: UUID) -> str:
    return urlsafe_b64encode(f"{at.isoformat()}_{pk}".encode()).decode().rstrip("=")


def _position(cursor: str) -> tuple[datetime, UUID] | None:
    try:
        moment, _, pk = urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)).decode().partition("_")
        at = datetime.fromisoformat(moment)
        # A time without a zone cannot be compared with those of the database.
        return (at, UUID(pk)) if at.tzinfo else None
    except ValueError:
        return None
