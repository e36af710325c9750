"""Store the calls of an attempt: what was really called, by digest, and the result (spec 5.2.1 c1).

A successful call is stored in the transaction that settles it; failed calls are stored when the attempt ends.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from apps.guard.schemas import Admitted
from apps.guard.signals import ATTEMPT
from apps.work import artifacts
from apps.work.ledger import LedgerLine, files_in, without_files
from apps.work.models import Attempt, LedgerEntry, WorkItem
from kernel.clock import now


def record_success(admitted: Admitted, value: Any, context: Mapping[str, Any]) -> None:
    """Store a call that took effect, inside the settling transaction."""
    LedgerEntry.objects.create(
        attempt_id=context[ATTEMPT],
        call_id=admitted.call_id,
        tool=admitted.call.tool,
        args_digest=admitted.call.digest,
        success=True,
        value=without_files(value),
        left=[{"book": book, "key": key, "revision": at} for (book, key), at in sorted(context["left"].items())],
        duration_seconds=context["elapsed"](),
        created_at=now(),
    )
    # What the next call leaves behind is its own.
    context["left"].clear()
    artifacts.store(context[ATTEMPT], files_in(value))


def record_failures(attempt: Attempt, lines: Iterable[LedgerLine]) -> None:
    """Store the calls that were refused or failed, with the time at which that was known."""
    LedgerEntry.objects.bulk_create(
        LedgerEntry(
            attempt=attempt,
            tool=line.tool[:120],
            args_digest=line.digest,
            success=False,
            error=line.error[:60],
            duration_seconds=line.seconds,
            created_at=line.at,
        )
        for line in lines
        if line.error
    )


def successful_calls(item: WorkItem, tools: Collection[str]) -> dict[str, dict[str, object]]:
    """Return what earlier attempts did with these tools, by digest: it is not repeated."""
    entries = LedgerEntry.objects.filter(attempt__work_item=item, success=True, tool__in=tools)
    return {entry.args_digest: entry.value for entry in entries}
