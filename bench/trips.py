"""How many round trips to the database does a turn make, and in which step? Counted, not timed.

A statement is one; BEGIN and COMMIT are one each. The figure of issue A counts statements that read and commits; what
only writes, and BEGIN, are printed beside it.
"""

from __future__ import annotations

import asyncio
import dataclasses
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from typing import Any
from unittest.mock import patch

from bench.report import Row
from bench.stage import Stage, stage

_step: ContextVar[str] = ContextVar("bench_step", default="")
BOUND = 25


def run() -> list[Row]:
    with stage() as ready:
        counts = _counted(ready)
    rows = [_row(f"round trips in {step}", kinds) for step, kinds in counts.items()]
    total = sum(counts.values(), Counter())
    return [*rows, _row("round trips of a turn", total, bound=f"≤ {BOUND} reading or committing")]


def _row(name: str, kinds: Counter[str], bound: str = "") -> Row:
    counted = kinds["read"] + kinds["commit"]
    every = sum(kinds.values())
    holds = counted <= BOUND if bound else None
    return Row(name, counted, "", "all round trips", every, counted / every, bound, holds)


def _counted(ready: Stage) -> dict[str, Counter[str]]:
    counts: dict[str, Counter[str]] = {}
    with _watching(counts):
        asyncio.run(_one_turn(ready, warm=True))
        counts.clear()
        asyncio.run(_one_turn(ready, warm=False))
    return counts


async def _one_turn(ready: Stage, *, warm: bool) -> None:
    """Accept a message and answer it, here, with every step under its name."""
    from uuid import UUID

    from apps.sessions import runner, services
    from kernel.tenancy import in_scope

    _, session = await asyncio.to_thread(ready.new_session)
    tenant = ready.deployment.tenant_id
    rounds = 2  # the second turn of a conversation is the usual one: its guarded run exists
    for number in range(rounds):
        _step.set("accept" if number else "first turn")
        await in_scope(tenant, services.accept_message, UUID(session), text="Hello there", client_id=str(number))
        await runner._one_turn(tenant, UUID(session))


@contextmanager
def _watching(counts: dict[str, Counter[str]]) -> Iterator[None]:
    from django.db import connection
    from django.db.backends.base.base import BaseDatabaseWrapper
    from django.db.backends.postgresql.base import DatabaseWrapper
    from django.db.backends.signals import connection_created

    def note(kind: str) -> None:
        if _step.get() not in ("", "first turn"):
            counts.setdefault(_step.get(), Counter())[kind] += 1

    def wrapper(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        note("write" if _only_writes(sql) else "read")
        return execute(sql, params, many, context)

    def created(connection: Any, **_: Any) -> None:
        if wrapper not in connection.execute_wrappers:
            connection.execute_wrappers.append(wrapper)

    real_commit = DatabaseWrapper.__dict__.get("_commit") or BaseDatabaseWrapper.__dict__["_commit"]
    real_autocommit = DatabaseWrapper.__dict__["_set_autocommit"]

    def commit(self: Any) -> Any:
        note("commit")
        return real_commit(self)

    def autocommit(self: Any, on: bool) -> Any:
        if not on:
            note("begin")
        return real_autocommit(self, on)

    with ExitStack() as stack:
        stack.enter_context(patch.object(DatabaseWrapper, "_commit", commit))
        stack.enter_context(patch.object(DatabaseWrapper, "_set_autocommit", autocommit))
        connection_created.connect(created)
        stack.callback(connection_created.disconnect, created)
        created(connection)
        _name_steps(stack)
        yield


def _only_writes(sql: str) -> bool:
    """An INSERT, UPDATE or DELETE whose caller is told nothing but that it worked; also one that a WITH begins."""
    words = sql.upper().split()
    changes = words[0] in ("INSERT", "UPDATE", "DELETE") or (words[0] == "WITH" and "INSERT" in words)
    return changes and "RETURNING" not in words


def _name_steps(stack: ExitStack) -> None:
    """Let every step of the turn say its name while it runs."""
    from apps.sessions import turn

    def slow(step: Any) -> Any:
        async def run(state: Any) -> Any:
            _step.set(f"{step.number} {step.name}" if _counting() else "first turn")
            return await step.run(state)

        return dataclasses.replace(step, run=run)

    def closing(step: Any) -> Any:
        def run(state: Any) -> Any:
            _step.set(f"{step.number} {step.name}" if _counting() else "first turn")
            return step.run(state)

        return dataclasses.replace(step, run=run)

    opened = turn.open_turn

    def open_turn(*args: Any, **kwargs: Any) -> Any:
        _step.set("0 opening" if _counting() else "first turn")
        return opened(*args, **kwargs)

    stack.enter_context(patch.object(turn, "BETWEEN", tuple(slow(step) for step in turn.BETWEEN)))
    stack.enter_context(patch.object(turn, "CLOSING", tuple(closing(step) for step in turn.CLOSING)))
    stack.enter_context(patch.object(turn, "open_turn", open_turn))


def _counting() -> bool:
    return _step.get() != "first turn"
