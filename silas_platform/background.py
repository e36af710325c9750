"""What does a web process do beside answering? It finishes turns that a dead process left, brings presences up to date
and lets consoles look again where a live poke was lost, deletes memories and words of conversations that have outlived
their time (no worker may read either) and files' bytes that nothing names, reads what was handed in to the knowledge,
sends what tasks and accounts owe to the outside and visitors' transcripts, tells members of new cards (no worker knows
people's addresses), tries proposed skills, carries out approved changes of documents, and signs checkpoints.

Daphne has no lifespan events, so the first request or socket starts the loops; `manage.py up` asks for /health/ready,
so that one always comes.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any

from django.conf import settings

from apps.audit.checkpoints import write_checkpoints
from apps.autonomy import alerting, relay
from apps.console import consumers as consoles
from apps.memory import intake
from apps.memory.memories import clear_expired
from apps.safety import mailing as safety_letters
from apps.sessions import attendance, catch_up, retention, runner
from apps.sessions.beside import shelf, transcripts
from apps.skills import forgetting, trials
from apps.tenants import letters
from apps.work.services import documents
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
    _running.add(loop.create_task(_every(settings.MEMORY_SWEEP_SECONDS, lambda: in_thread(letters.clear_old))))
    _running.add(loop.create_task(_every(settings.ALERT_SECONDS, lambda: in_thread(alerting.send_due))))
    _running.add(loop.create_task(_every(settings.MEMORY_SWEEP_SECONDS, lambda: in_thread(clear_expired))))
    # In a thread of its own: a website takes minutes, and holds no line to the database meanwhile.
    _running.add(loop.create_task(_every(settings.INTAKE_SECONDS, lambda: asyncio.to_thread(intake.work_off))))
    # Sandboxes run meanwhile: they too in a thread of their own.
    _running.add(loop.create_task(_every(settings.SKILL_SECONDS, lambda: asyncio.to_thread(trials.work_off))))
    # Embeds a text: it holds no line to the database meanwhile either.
    _running.add(loop.create_task(_every(settings.KNOWLEDGE_SECONDS, lambda: asyncio.to_thread(documents.work_off))))
    _running.add(loop.create_task(_every(settings.MEMORY_SWEEP_SECONDS, lambda: in_thread(retention.forget_due))))
    _running.add(loop.create_task(_every(settings.MEMORY_SWEEP_SECONDS, lambda: in_thread(forgetting.forget_due))))
    _running.add(loop.create_task(_every(settings.TRANSCRIPT_SECONDS, lambda: in_thread(transcripts.send_due))))
    _running.add(loop.create_task(_every(settings.FILE_SWEEP_SECONDS, lambda: in_thread(shelf.sweep))))
    if settings.SAFETY_MAIL_CODES:
        _running.add(loop.create_task(_every(settings.ALERT_SECONDS, lambda: in_thread(safety_letters.send_due))))
    if settings.SILAS_SIGNING_KEY:
        _running.add(loop.create_task(_every(settings.CHECKPOINT_SECONDS, lambda: in_thread(write_checkpoints))))


async def _every(seconds: float, work: Callable[[], Awaitable[Any]]) -> None:
    while True:
        try:
            await work()
        except Exception:  # noqa: BLE001 (a database that is gone for a while must not end the loop)
            _log.exception("background_work_failed")
        await asyncio.sleep(seconds)
