"""How Celery reaches its broker: for workers, for the processes that wake them, and for beat, which reads no other
settings."""

from __future__ import annotations

from typing import Any

from kernel.redis_servers import celery_broker
from silas_platform.settings import env

# A broker that vanishes without closing its connections is noticed.
_OPTIONS = {"socket_timeout": 10, "socket_connect_timeout": 10}


def url() -> str:
    """The broker's URL, as Celery names it."""
    return celery_broker(_server())[0]


def options() -> dict[str, Any]:
    """Celery's transport options for this broker."""
    return {**_OPTIONS, **celery_broker(_server())[1]}


def _server() -> str:
    return env.text("SILAS_BROKER_URL") or env.text("REDIS_URL")


def redis_servers() -> tuple[str, ...]:
    """Every Redis of this installation, once: cache and limits, the channel layer, the broker."""
    given = map(env.text, ("REDIS_URL", "SILAS_CHANNELS_URL", "SILAS_BROKER_URL"))
    return tuple(dict.fromkeys(filter(None, given)))
