"""Liveness and readiness endpoints (contract interfaces: /health, /health/ready)."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable

from django.core.cache import cache
from django.db import connection
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder
from django.http import HttpRequest, JsonResponse

from kernel.presence import open_presences
from silas_platform.schema_version import fault_of
from silas_platform.up.address import RUN


def alive(request: HttpRequest) -> JsonResponse:
    return JsonResponse({"status": "ok", "connections": open_presences()})


def ready(request: HttpRequest) -> JsonResponse:
    """Return 200 when database, Redis and migrations are ready, else 503 naming what is missing.

    `run` lets `manage.py up` verify that its own process answers.
    """
    missing = [name for name, works in (("database", _migrated), ("redis", _redis)) if not _passes(works)]
    status = {"status": "starting" if missing else "ok", "missing": missing, "run": os.environ.get(RUN, "")}
    return JsonResponse(status, status=503 if missing else 200)


def _passes(check: Callable[[], object]) -> bool:
    try:
        return bool(check())
    except Exception:  # noqa: BLE001 (any error of a backing service means "not ready")
        return False


def _migrated() -> bool:
    applied = MigrationRecorder(connection).applied_migrations().keys()
    return _migrations() <= applied and not fault_of(applied)


@functools.cache
def _migrations() -> frozenset[tuple[str, str]]:
    """(application, name) of every migration of this version, read once."""
    return frozenset(MigrationLoader(None).disk_migrations)


def _redis() -> bool:
    cache.set("health", "1", 5)
    return bool(cache.get("health") == "1")
