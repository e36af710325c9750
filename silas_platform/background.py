"""What a web process does beside answering. It finishes turns that a dead process left, brings presences up to date
and lets consoles look again where a live poke was lost, sends what tasks and accounts owe to the outside and visitors'
transcripts, tells members of new cards (no worker knows people's addresses), and ends what agents under the safety loop
left behind.

Daphne has no lifespan events, so the first request or socket starts the loops; `manage.py up` asks for /health/ready,
so that one always comes.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any

from django.conf import settings

from apps.autonomy import alerting, relay
from apps.console import consumers as consoles
from apps.safety import mailing as safety_letters
from apps.safety import upkeep as safety
from apps.sessions import attendance, catch_up, runner
from apps.sessions.beside import transcripts
from apps.tenants import letters
from kernel.seats import RENEW_SECONDS
from kernel.tenancy import in_thread

_log = logging.getLogger(__name__)
_Application = Callable[[dict[str, Any], Callable[..., Awaitable[Any]], Callable[..., Awaitable[Any]]], Awaitable[None]]
_running: set[asyncio.Task[None]] = set()


def with_background(application: Any) -> _Application:
    """The ASGI application, which starts this process's loops with the first connection."""

    async def answer(scope: dict[str, Any], receive: Any, send: Any) -> None:
        if not _running:
            _start()
        await application(scope, receive, send)

    return answer


def _start() -> None:
    loop = asyncio.get_running_loop()
    _running.add(loop.create_task(_every(settings.TURN_SWEEP_SECONDS, runner.pick_up_waiting)))
    _running.add(loop.create_task(_every(settings.PRESENCE_SWEEP_SECONDS, catch_up.sweep)))
    _running.add(loop.create_task(_every(RENEW_SECONDS, attendance.renew)))
    _running.add(loop.create_task(_every(settings.CONSOLE_SWEEP_SECONDS, consoles.sweep)))
    _running.add(loop.create_task(_every(settings.OUTBOX_SECONDS, lambda: in_thread(relay.send_due))))
    _running.add(loop.create_task(_every(settings.OUTBOX_SECONDS, lambda: in_thread(letters.send_due))))
    _running.add(loop.create_task(_every(settings.ALERT_SECONDS, lambda: in_thread(alerting.send_due))))
    _running.add(loop.create_task(_every(settings.TRANSCRIPT_SECONDS, lambda: in_thread(transcripts.send_due))))
    _running.add(loop.create_task(_every(settings.SAFETY_SWEEP_SECONDS, lambda: in_thread(safety.sweep))))
    if settings.SAFETY_MAIL_CODES:
        _running.add(loop.create_task(_every(settings.ALERT_SECONDS, lambda: in_thread(safety_letters.send_due))))


async def _every(seconds: float, work: Callable[[], Awaitable[Any]]) -> None:
    while True:
        try:
            await work()
        except Exception:  # noqa: BLE001 (a database that is gone for a while must not end the loop)
            _log.exception("background_work_failed")
        await asyncio.sleep(seconds)
