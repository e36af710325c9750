"""Reopen Django's connection of this thread with another address, as another process would."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import connections

from silas_platform.settings.databases import database as address


@contextmanager
def connected_as(dsn: str) -> Iterator[None]:
    kept, other = connections["default"], connections.create_connection("default")
    other.settings_dict = {**other.settings_dict, **address(dsn), "OPTIONS": {}}
    connections["default"] = other
    try:
        yield
    finally:
        other.close()
        connections["default"] = kept
