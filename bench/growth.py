"""Measure whether a turn gets slower as a conversation grows: from 10 to 10,000 recorded messages, in one run.

Goals: less than 10 % more. Each recorded message stands in the chronicle and in the raw lane of memory,
with words and vector. A turn in a short conversation and one in a long one take turns, in this process, without a
socket. The second row is promised nothing: a turn whose model asked memory, which looks through the raw lane.
"""

from __future__ import annotations

import asyncio
import statistics
import time
from contextlib import AbstractContextManager
from typing import Any
from uuid import UUID

from bench.report import Row
from bench.stage import Stage, stage

FEW, MANY = 10, 10_000
WARM, ROUNDS = 15, 120
MOST = 1.10
_LINES = (
    "I moved to another house last week and want to know what happens with my policy.",
    "The washing machine that I ordered has not arrived, and nobody answers my calls.",
    "Can I send the blue lamp back although I have thrown its box away?",
    "My claim from March is still open; what else do you need from me?",
)
_QUESTION = {"strategy": "semantic", "query": "What did I say about the blue lamp?"}


def run() -> list[Row]:
    with stage() as ready, _unbounded():
        plain = asyncio.run(_alternating(ready, asks=False))
        asked = asyncio.run(_alternating(ready, asks=True))
    return [
        _row(f"turn, {MANY:,} messages in its scope, p50", *plain, bound=f"≤ {MOST:.2f}"),
        _row(f"turn that asks memory, {MANY:,} messages, p50", *asked),
    ]


def _unbounded() -> AbstractContextManager[object]:
    """A conversation is full at half of what the figure asks for; here it is not."""
    from django.test import override_settings

    return override_settings(MAX_CHRONICLE=10 * MANY)


def _row(name: str, many: float, few: float, *, bound: str = "") -> Row:
    held = many / few <= MOST if bound else None
    return Row(name, many, "ms", f"{FEW} messages in its scope", few, many / few, bound, held)


async def _alternating(ready: Stage, *, asks: bool) -> tuple[float, float]:
    """Medians in ms: long, short. Every round has a short conversation of its own, or it would not stay short."""
    times: tuple[list[float], list[float]] = ([], [])
    long = await asyncio.to_thread(_talked, ready, MANY, asks)
    for number in range(WARM + ROUNDS):
        short = await asyncio.to_thread(_talked, ready, FEW, asks)
        for spent, session in zip(times, (long, short), strict=True):
            await asyncio.to_thread(_ask_again, ready, session, asks)
            spent.append(await _turn(ready, session, number))
    return statistics.median(times[0][WARM:]), statistics.median(times[1][WARM:])


async def _turn(ready: Stage, session: UUID, number: int) -> float:
    from apps.sessions import runner, services
    from kernel.tenancy import in_scope

    tenant = ready.deployment.tenant_id
    started = time.perf_counter()
    await in_scope(tenant, services.accept_message, session, text="Hello there", client_id=f"turn-{number}")
    await runner._one_turn(tenant, session)
    return (time.perf_counter() - started) * 1000


def _talked(ready: Stage, count: int, asks: bool) -> UUID:
    """A conversation with `count` recorded messages, the last two by a turn of its own: the guarded run exists."""
    from django.db import connections

    from apps.sessions.models import ChatSession
    from kernel.tenancy import tenant_scope

    session = UUID(ready.new_session()[1])
    with tenant_scope(ready.deployment.tenant_id):
        _record(session, count - 2)
        _remember(session, count - 2)
        ChatSession.objects.filter(pk=session).update(seq=count - 2)
    asyncio.run(_turn(ready, session, -1))
    if count == MANY:
        with connections["owner"].cursor() as cursor:
            cursor.execute("ANALYZE")
    return session


def _record(session: UUID, count: int) -> None:
    from apps.sessions.models import ChronicleEntry, Turn
    from kernel.clock import now

    moment = now()
    # What no turn has let in is read by none (ADR 43).
    let_in = {"session_id": session, "epoch": 0, "step": "finish", "status": "done", "started_at": moment}
    Turn.objects.bulk_create(
        (Turn(message_seq=at, number=at, **let_in) for at in range(1, count + 1, 2)), batch_size=1000
    )
    ChronicleEntry.objects.bulk_create(
        (
            ChronicleEntry(
                session_id=session,
                seq=at,
                kind="message",
                sender="bot" if at % 2 == 0 else "visitor",
                text=f"{_LINES[at % 4]} ({at})",
                taint="external",
                created_at=moment,
            )
            for at in range(1, count + 1)
        ),
        batch_size=1000,
    )


def _remember(session: UUID, count: int) -> None:
    from apps.memory import memories
    from apps.memory.enums import ScopeKind, SourceKind
    from apps.memory.schemas import Note, Scope

    scope = Scope(ScopeKind.CONVERSATION, str(session))
    for begin in range(1, count + 1, 500):
        notes = [
            Note(scope, f"{_LINES[at % 4]} ({at})", SourceKind.CONVERSATION_RAW, f"seq:{at}", session_id=session)
            for at in range(begin, min(begin + 500, count + 1))
        ]
        memories._insert(memories.prepare(notes))


def _ask_again(ready: Stage, session: UUID, asks: bool) -> None:
    """What a model would have asked in its last answer."""
    if not asks:
        return
    from apps.sessions.context_state import Focus
    from apps.sessions.models import ChatSession
    from kernel.tenancy import tenant_scope
    from llm.context.subscriptions import MEMORY_QUERY, subscribe

    with tenant_scope(ready.deployment.tenant_id):
        row: Any = ChatSession.objects.get(pk=session)
        asked = subscribe((), MEMORY_QUERY, _QUESTION["query"], turn=row.turns, strategy=_QUESTION["strategy"])
        row.focus = Focus(subscriptions=asked).as_kept()
        row.save(update_fields=["focus"])
