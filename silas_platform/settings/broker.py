"""How Celery reaches its broker: for workers, for the processes that wake them, and for beat, which reads no other
settings."""

from __future__ import annotations

from collections.abc import Callable

from silas_platform.settings import env

# A broker that vanishes without closing its lines is noticed.
OPTIONS = {"socket_timeout": 10, "socket_connect_timeout": 10}


def url() -> str:
    """The broker's server, as Celery names it."""
    server = env.text("SILAS_BROKER_URL") or env.text("REDIS_URL")
    return server.replace("unix://", "redis+socket://", 1)


def redis_servers(read: Callable[[str], str | None] = env.text) -> tuple[str, ...]:
    """Every Redis of this installation, once: cache and limits, the channel layer, the broker. `read` gives a
    variable's value."""
    given = map(read, ("REDIS_URL", "SILAS_CHANNELS_URL", "SILAS_BROKER_URL"))
    return tuple(dict.fromkeys(filter(None, given)))
