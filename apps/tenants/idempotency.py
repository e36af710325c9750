"""Carry out a request of the REST API once, however often it is sent with the same `Idempotency-Key`.

A request is claimed before its view runs and answered after it, each in a transaction of its own: a view that asks a
model may hold no transaction. Rows, because Redis may forget them, and the action would run twice. A refusal gives the
claim up, because a refused request wrote nothing. A claim without an answer, left by a process that ended in between
or by a server error, stands for an outcome that is not known. Nothing here is recorded in the audit log:
what the request did is.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.db.models.functions import Now

from apps.tenants import vault
from apps.tenants.models import IdempotentRequest
from kernel.clock import now
from kernel.error_codes import ErrorCode
from kernel.errors import SilasError

KEPT = timedelta(hours=24)
# No request takes longer; until then a claim without an answer is a request that still runs.
RUNS_AT_MOST = timedelta(minutes=2)
_RETRY_AFTER_SECONDS = 5
_BATCH = 1000


@dataclass(frozen=True)
class StoredAnswer:
    """The answer to the first request; `data` is None for an answer without a body."""

    status: int
    data: Any
    headers: dict[str, str]


def claim(digest: str, *, body_digest: str, may_repeat: bool) -> StoredAnswer | None:
    """Claim a request, in the caller's scope: None for one that is to be carried out, else the answer that it had.

    `may_repeat`: its service recognises a request that it has already carried out, so that one without an outcome is
    carried out again. Raises 409 `idempotency_key_reused` for another body, `request_in_progress` with `retry_after`,
    `outcome_unknown`, and `answer_not_kept` where the answer held a secret or was a file or a stream.
    """
    rows = IdempotentRequest.objects.filter(digest=digest)
    rows.filter(created_at__lte=now() - KEPT).delete()
    # The unique digest decides between two requests at once; the second waits here for the first one's commit.
    row, is_new = IdempotentRequest.objects.get_or_create(
        digest=digest, defaults={"body_digest": body_digest, "created_at": now()}
    )
    if is_new:
        return None
    # Another request under the same key would get the answer to the first.
    if row.body_digest != body_digest:
        raise SilasError(ErrorCode.IDEMPOTENCY_KEY_REUSED)
    if row.status is None:
        if row.created_at > now() - RUNS_AT_MOST:
            raise SilasError(ErrorCode.REQUEST_IN_PROGRESS, extra={"retry_after": _RETRY_AFTER_SECONDS})
        # By the time that was read: of two repetitions only one carries it out.
        if may_repeat and rows.filter(status=None, created_at=row.created_at).update(created_at=now()):
            return None
        raise SilasError(ErrorCode.OUTCOME_UNKNOWN)
    if not row.answer:
        raise SilasError(ErrorCode.ANSWER_NOT_KEPT)
    return StoredAnswer(row.status, **json.loads(vault.unseal(bytes(row.answer), belongs_to=_place(digest))))


def store_answer(digest: str, answer: StoredAnswer, *, keep: bool) -> None:
    """Store the answer to a claimed request; without `keep`, only that it was carried out."""
    content = json.dumps({"data": answer.data, "headers": answer.headers}).encode() if keep else b""
    sealed = vault.seal(content, belongs_to=_place(digest)) if keep else b""
    IdempotentRequest.objects.filter(digest=digest).update(status=answer.status, answer=sealed)


def give_up(digest: str) -> None:
    """Remove the claim of a request that was refused, so that a corrected one may have the same key."""
    IdempotentRequest.objects.filter(digest=digest, status=None).delete()


def delete_old() -> bool:
    """A step of retention: delete requests that are past their time, at most `_BATCH`."""
    ids = list(IdempotentRequest.objects.filter(created_at__lt=Now() - KEPT).values_list("pk", flat=True)[:_BATCH])
    IdempotentRequest.objects.filter(pk__in=ids).delete()
    return len(ids) == _BATCH


def _place(digest: str) -> str:
    return f"idempotent_request:{digest}"
