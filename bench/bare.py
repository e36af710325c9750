"""Baseline: Django and Channels without any of our code.

One connection with Django's own defaults, kept open. What the platform gains below its rooms (pool, threads, statements
planned once and sent together) is its own, so it belongs to the measured side alone.
"""

from __future__ import annotations

import os
from functools import cache

from django.db import DEFAULT_DB_ALIAS, connection, connections, transaction
from django.db.utils import ConnectionHandler

from silas_platform.settings.databases import database

_INSERT = "INSERT INTO bench_echo (said) VALUES (%s)"


@cache
def stock() -> str:
    """The alias of a connection to the same database, as the same role, with Django's defaults."""
    plain = {DEFAULT_DB_ALIAS: database(os.environ["DATABASE_URL"], CONN_MAX_AGE=None)}
    connections.settings["stock"] = ConnectionHandler(plain).settings[DEFAULT_DB_ALIAS]
    return "stock"


def insert(text: str) -> None:
    with transaction.atomic(using=stock()), connections[stock()].cursor() as cursor:
        cursor.execute(_INSERT, [text])


def tuned_insert(text: str) -> None:
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(_INSERT, [text])
