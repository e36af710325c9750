"""Write the results of a session, in the settlement of its guarded calls; once for each occasion.

A second attempt of the same occasion finds what the first wrote and adds nothing. A precedent of the same kind and
wording is counted up in one statement, on a partial unique index, so that rivals count correctly.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from typing import Any
from uuid import UUID, uuid4

from django.db import connection
from django.db.models.functions import Now

from apps.autonomy import queries
from apps.autonomy.enums import ArtifactKind, SpawnRefusal, TriggerKind
from apps.autonomy.models import Artifact, AutonomousSession, Finding, MemoryProposal, OpenQuestion, Task
from apps.autonomy.models.findings import MOST_ARTIFACT_BYTES
from apps.autonomy.schemas import (
    DraftArtifact,
    DraftFinding,
    DraftPrecedent,
    DraftProposal,
    Notify,
    NotSpawned,
    Occasion,
    Spawned,
)
from apps.autonomy.services import notices, session_start
from apps.autonomy.services.outbox import enqueue_result_email
from apps.autonomy.signals import result_delivered
from apps.guard.schemas import CallFailed
from kernel.canonical import canonical_bytes, sha256_hex
from kernel.error_codes import ErrorCode
from kernel.errors import SilasError
from kernel.language import gettext
from kernel.tenancy import current_tenant_id

_RECORD_PRECEDENT = """
    INSERT INTO autonomy_precedent AS p (id, tenant_id, task_id, session_id, root_id, skills, taint, pattern_kind,
                                         summary, digest, count, evidence, state)
    VALUES (%(id)s, %(tenant)s, %(task)s, %(session)s, %(root)s, %(skills)s::jsonb, 'external', %(kind)s, %(summary)s,
            %(digest)s, 1, %(evidence)s::jsonb, 'open')
    ON CONFLICT (tenant_id, pattern_kind, digest) WHERE NOT state = 'dismissed' DO UPDATE
    SET count = p.count + (p.root_id <> excluded.root_id)::int, evidence = excluded.evidence,
        updated_at = statement_timestamp(), task_id = excluded.task_id, session_id = excluded.session_id,
        root_id = excluded.root_id, skills = excluded.skills
    RETURNING p.id, p.count
"""


def write_finding(session_id: UUID, draft: DraftFinding, *, phase: str) -> None:
    session = _session(session_id)
    row = Finding(
        **_provenance(session),
        title=draft.title,
        content=draft.content,
        severity=draft.severity,
        phase=phase,
        digest=sha256_hex(f"{phase}\n{draft.title}\n{draft.content}"),
        key=draft.key,
        sources=[source.model_dump(mode="json") for source in draft.sources],
    )
    Finding.objects.bulk_create([row], ignore_conflicts=True)


def write_artifact(session_id: UUID, draft: DraftArtifact) -> None:
    """Raises `CallFailed` for one that is too large."""
    session = _session(session_id)
    is_table = draft.kind is ArtifactKind.TABLE
    table = {"columns": list(draft.columns), "rows": [list(row) for row in draft.rows]} if is_table else None
    stored = canonical_bytes([draft.content, table])
    if len(stored) > MOST_ARTIFACT_BYTES:
        raise CallFailed("artifact_too_large", gettext("This artifact is too large to store."), effect_free=True)
    row = Artifact(
        **_provenance(session),
        title=draft.title,
        kind=draft.kind,
        content="" if is_table else draft.content,
        table=table,
        size=len(stored),
        digest=sha256_hex([draft.title, draft.kind.value, draft.content, table]),
    )
    Artifact.objects.bulk_create([row], ignore_conflicts=True)


def count_proposals(session_id: UUID) -> int:
    """The number of proposals by all attempts of the occasion."""
    return int(MemoryProposal.objects.filter(root_id=_session(session_id).origin).count())


def write_proposal(session_id: UUID, draft: DraftProposal) -> None:
    """Raises `SilasError("memory_writes_reached")` when the session has used its limit of proposals."""
    session = _session(session_id)
    made, most = count_proposals(session_id), session.frozen_limits.memory_writes
    if most is not None and made >= most:
        raise SilasError(ErrorCode.MEMORY_WRITES_REACHED)
    row = MemoryProposal(
        **_provenance(session),
        kind=draft.kind,
        title=draft.title,
        content=draft.content,
        memory_type=draft.memory_type.value,
        target=draft.target,
        evidence=dict(draft.evidence),
        digest=sha256_hex(f"{draft.kind}\n{draft.target}\n{draft.title}\n{draft.content}"),
        number=made + 1,
    )
    MemoryProposal.objects.bulk_create([row], ignore_conflicts=True)


def record_precedent(session_id: UUID, draft: DraftPrecedent) -> tuple[UUID, int]:
    """Return its id, and how often it has been seen now."""
    session = _session(session_id)
    values: dict[str, Any] = {
        "id": uuid4(),
        "tenant": current_tenant_id(),
        "task": session.task_id,
        "session": session.pk,
        "root": session.origin,
        "skills": json.dumps(session.task.skills),
        "kind": draft.pattern_kind,
        "summary": draft.summary,
        "digest": sha256_hex(draft.summary),
        "evidence": json.dumps(dict(draft.evidence)),
    }
    with connection.cursor() as cursor:
        cursor.execute(_RECORD_PRECEDENT, values)
        row: tuple[UUID, int] = cursor.fetchone()
    return row


def notify_owner(session_id: UUID, *, route: Notify | None, failed: bool) -> None:
    """Write the notice in the owner's console, which is the record; email and webhooks as the route says."""
    session = _session(session_id)
    owner_id = session.task.owner_id
    if owner_id is None:
        return
    counts = {
        "findings": Finding.objects.filter(root_id=session.origin).count(),
        "proposals": MemoryProposal.objects.filter(root_id=session.origin).count(),
        "failed": int(failed),
    }
    notices.notify_of_session(session, reason="", counts=counts)
    if route is not None and route.email:
        enqueue_result_email(session, owner_id, counts)
    if route is not None and route.webhook:
        result_delivered(session, counts)


def start_next_task(session_id: UUID, task_id: UUID, *, output: str) -> Spawned | NotSpawned:
    """Queue the task that follows, within what this session has left. `output` is external text to it."""
    session = _session(session_id)
    task: Task | None = Task.objects.filter(pk=task_id, deleted_at=None).first()
    if task is None:
        return NotSpawned(SpawnRefusal.TASK_DELETED)
    return session_start.spawn(
        task,
        kind=TriggerKind.CHAIN,
        occasion=Occasion(f"chain:{session.origin}:{task_id}", params={"from": str(session.pk)}),
        requested_by=f"session:{session.pk}",
        parent=queries.session(session_id),
        context=output,
    )


def escalate(session_id: UUID, signal: str) -> Spawned | NotSpawned | None:
    """Queue the more capable task to which this one may escalate.

    It runs within its own limits and is passed one word, the signal. A session that was escalated or delegated cannot
    escalate, and no task of its own chain is started.
    """
    session = _session(session_id)
    capable = session.task.escalates_to
    if capable is None or session.trigger_kind in (TriggerKind.ESCALATED, TriggerKind.DELEGATED):
        return None
    return session_start.spawn(
        capable,
        kind=TriggerKind.ESCALATED,
        occasion=Occasion(f"escalated:{session.origin}", params={"signal": signal, "from": str(session.pk)}),
        requested_by=f"session:{session.pk}",
        parent=session,
    )


def mark_reviewed(questions: list[UUID]) -> None:
    OpenQuestion.objects.filter(pk__in=questions).update(reviewed_at=Now())


def close_gone_findings(session_id: UUID, present: Collection[str]) -> int:
    """Close the task's findings that this run no longer saw; returns how many."""
    rows = Finding.objects.filter(task_id=_session(session_id).task_id, gone_at=None).exclude(key="")
    return int(rows.exclude(key__in=present).update(gone_at=Now()))


def _session(session_id: UUID) -> AutonomousSession:
    session: AutonomousSession | None = (
        AutonomousSession.objects.select_related("task__escalates_to").filter(pk=session_id).first()
    )
    if session is None:
        raise CallFailed("session_missing", gettext("This run no longer exists."), effect_free=True)
    return session


def _provenance(session: AutonomousSession) -> dict[str, object]:
    return {"task": session.task, "session": session, "root_id": session.origin, "skills": list(session.task.skills)}
