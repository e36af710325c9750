"""Read the wall clock. Nothing else does; every datetime in the platform is aware and UTC."""

from __future__ import annotations

from datetime import UTC, datetime


def now() -> datetime:
    return datetime.now(UTC)


def require_aware(moment: datetime) -> datetime:
    """Return `moment` in UTC; a naive datetime is a programming error (contract silas 0)."""
    if moment.tzinfo is None:
        raise ValueError("naive datetime refused")
    return moment.astimezone(UTC)
