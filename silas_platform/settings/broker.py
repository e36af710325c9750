"""How Celery reaches its broker: for workers, for the processes that wake them, and for beat, which reads no other
settings."""

from __future__ import annotations

from silas_platform.settings import env

# A broker that vanishes without closing its lines is noticed.
OPTIONS = {"socket_timeout": 10, "socket_connect_timeout": 10}


def redis_url() -> str:
    """The broker's server, as redis-py names it."""
    return env.text("SILAS_BROKER_URL") or env.text("REDIS_URL")


def url() -> str:
    """The broker's server, as Celery names it."""
    return redis_url().replace("unix://", "redis+socket://", 1)


def redis_servers() -> tuple[str, ...]:
    """Every Redis of this installation, once: cache and limits, the channel layer, the broker."""
    given = (env.text("REDIS_URL"), env.text("SILAS_CHANNELS_URL"), redis_url())
    return tuple(dict.fromkeys(filter(None, given)))
