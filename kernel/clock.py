"""Read the wall clock. Nothing else does; every datetime in the platform is aware and UTC."""

from __future__ import annotations

from datetime import UTC, datetime


def now() -> datetime:
    return datetime.now(UTC)
