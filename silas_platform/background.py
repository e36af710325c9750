"""Background loops of a web process: resume turns that a dead process left, hold simulated conversations, and
maintain this process's sockets.

Everything else that runs later is a message on the bus, handled by Celery workers (ADR 115). Daphne has no lifespan
events, so the first connection starts the loops; `manage.py up` requests /health/ready, which ensures there is one.
"""

from __future__ import annotations

import asyncio
import functools
import logging
import threading
from collections.abc import Awaitable, Callable
from typing import Any

from django.conf import settings

from apps.console import consumers as consoles
from apps.sessions import catch_up, runner
from apps.sessions.ratelimit import open_sockets
from apps.simulations import runner as simulations
from kernel.ratelimit.concurrency import RENEW_SECONDS
from llm import loading

_log = logging.getLogger(__name__)
_Application = Callable[
    [dict[str, object], Callable[..., Awaitable[object]], Callable[..., Awaitable[object]]], Awaitable[None]
]
_running: set[asyncio.Task[None]] = set()


def with_background(application: Any) -> _Application:
    """Wrap the ASGI application so that the first connection starts this process's loops.

    The first socket is a person's, so it also begins to load what models run with: before the first message is written.
    """
    load_once = functools.cache(lambda: threading.Thread(target=loading.load, daemon=True).start())

    async def answer(scope: dict[str, Any], receive: Any, send: Any) -> None:
        # Daphne has no lifespan events, so the first connection starts the loops.
        if not _running:
            _start()
        if scope["type"] == "websocket":
            load_once()
        await application(scope, receive, send)

    return answer


def _start() -> None:
    loop = asyncio.get_running_loop()
    _running.add(loop.create_task(_every(settings.TURN_SWEEP_SECONDS, runner.pick_up_waiting)))
    _running.add(loop.create_task(_every(settings.PRESENCE_SWEEP_SECONDS, catch_up.sweep)))
    _running.add(loop.create_task(_every(RENEW_SECONDS, open_sockets.renew)))
    _running.add(loop.create_task(_every(settings.CONSOLE_SWEEP_SECONDS, consoles.sweep)))
    _running.add(loop.create_task(_every(settings.SIMULATION_SWEEP_SECONDS, simulations.serve_due)))


async def _every(seconds: float, work: Callable[[], Awaitable[object]]) -> None:
    while True:
        try:
            await work()
        except Exception:  # noqa: BLE001 (a database that is gone for a while must not end the loop)
            _log.exception("background_work_failed")
        await asyncio.sleep(seconds)
