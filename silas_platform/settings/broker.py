"""How Celery reaches its broker: for workers, for the processes that wake them, and for beat, which reads no other
settings."""

from __future__ import annotations

from silas_platform.settings import env

# A broker that vanishes without closing its lines is noticed.
OPTIONS = {"socket_timeout": 10, "socket_connect_timeout": 10}


def url() -> str:
    return env.text("REDIS_URL").replace("unix://", "redis+socket://", 1)
