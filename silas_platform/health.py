"""Liveness and readiness endpoints (contract interfaces: /health, /health/ready)."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from typing import TypeVar

from django.core.cache import cache
from django.db import connection
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder
from django.http import HttpRequest, JsonResponse

from kernel.presence import open_presences
from silas_platform.schema_version import fault_of
from silas_platform.up.address import RUN

Answer = TypeVar("Answer")


def alive(request: HttpRequest) -> JsonResponse:
    return JsonResponse({"status": "ok", "connections": open_presences()})


def ready(request: HttpRequest) -> JsonResponse:
    """Return 200 when database, Redis and migrations are ready, else 503 naming what is missing.

    `run` lets `manage.py up` verify that its own process answers; `reason` says that this version is too old for the
    database's schema.
    """
    applied = _value(_applied)
    fault = fault_of(applied or ())
    database = applied is not None and _migrations() <= applied and not fault
    missing = [name for name, works in (("database", database), ("redis", _value(_redis))) if not works]
    status = {"status": "starting" if missing else "ok", "missing": missing, "run": os.environ.get(RUN, "")}
    if fault:
        status["reason"] = fault
    return JsonResponse(status, status=503 if missing else 200)


def _value(ask: Callable[[], Answer]) -> Answer | None:
    try:
        return ask()
    except Exception:  # noqa: BLE001 (any error of a backing service means "not ready")
        return None


def _applied() -> frozenset[tuple[str, str]]:
    return frozenset(MigrationRecorder(connection).applied_migrations())


@functools.cache
def _migrations() -> frozenset[tuple[str, str]]:
    """(application, name) of every migration of this version, read once."""
    return frozenset(MigrationLoader(None).disk_migrations)


def _redis() -> bool:
    cache.set("health", "1", 5)
    return bool(cache.get("health") == "1")
