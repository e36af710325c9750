"""Open, halt and close runs, and move them through phases. Inside the caller's scope."""

from __future__ import annotations

from collections.abc import Collection
from uuid import UUID

from django.db.models import F
from django.db.models.functions import Now

from apps.audit.enums import AuditEvent
from apps.audit.services import record
from apps.gates.content import ContentMark
from apps.guard import rules
from apps.guard.enums import HaltState, Origin, Phase, RunStatus, TerminalReason
from apps.guard.models import GuardedRun
from apps.guard.schemas import ApprovedCalls, Limits, RunRef
from kernel.errors import NotFound

_MAY_BE_HALTED = [state for state, onward in rules.HALT_TRANSITIONS.items() if HaltState.HALT_REQUESTED in onward]


def open_run(
    origin: Origin,
    owner_ref: UUID,
    *,
    deployment_id: UUID | None,
    phase: Phase = Phase.INTERACTIVE,
    task_ref: UUID | None = None,
    critical: bool | None = None,
    allow: Collection[str] | None = None,
    deny: Collection[str] = (),
    limits: Limits | None = None,
    approval: ApprovedCalls | None = None,
    marked: bool = False,
) -> GuardedRun:
    """Open the run of a chat scope, work attempt or session (`owner_ref`); its limits never change afterwards.

    `allow` None allows what phase and level allow, an empty list allows no tool. `task_ref` is the task whose budget
    pays too. `critical` runs continue where the tenant's limit pauses only the others; by default runs that a person
    waits for are critical and unattended ones are not. `marked`: it continues from the output of another run that had
    read instructions to the assistant."""
    attended = Origin(origin) is not Origin.BACKGROUND
    run: GuardedRun = GuardedRun.objects.create(
        origin=Origin(origin),
        owner_ref=owner_ref,
        deployment_id=deployment_id,
        phase=Phase(phase),
        task_ref=task_ref,
        critical=attended if critical is None else critical,
        allow=None if allow is None else sorted(allow),
        deny=sorted(deny),
        limits=(limits or Limits()).model_dump(mode="json", exclude_none=True),
        approval=None if approval is None else approval.model_dump(mode="json"),
        content_marks=int(marked),
    )
    record(AuditEvent.RUN_STARTED, subject=_subject(run.pk), data={"origin": run.origin, "phase": run.phase})
    return run


def record_mark(ref: RunRef, mark: ContentMark) -> None:
    """Record that a model of this run is about to read marked content; from then on the run may do less."""
    GuardedRun.objects.filter(pk=ref.run_id).update(content_marks=F("content_marks") + 1, marked_turn=ref.turn)
    event, data = mark.note
    record(AuditEvent(event), subject=_subject(ref.run_id), data=data)


def copy_mark(run_id: UUID, *, to: UUID) -> None:
    """Mark the run `to`, which is about to read what another run wrote, if that run is marked."""
    if GuardedRun.objects.filter(pk=run_id, content_marks__gt=0).exists():
        GuardedRun.objects.filter(pk=to, content_marks=0).update(content_marks=1)


def enter_phase(run_id: UUID, phase: Phase) -> bool:
    """Move an unattended run to its next phase; False if it has ended. The database refuses any other phase
    (`IntegrityError`)."""
    running = GuardedRun.objects.filter(pk=run_id, status=RunStatus.RUNNING)
    entered = bool(running.update(phase=Phase(phase)))
    if entered:
        record(AuditEvent.PHASE_TRANSITION, subject=_subject(run_id), data={"to_phase": Phase(phase).value})
    return entered


def halt(run_id: UUID, *, reason: TerminalReason = TerminalReason.EXTERNAL_HALT, actor: str = "system") -> bool:
    """Ask a run to stop before its next call; calls under way are not awaited. False if it is stopped or has ended."""
    running = GuardedRun.objects.filter(pk=run_id, status=RunStatus.RUNNING, halt_state__in=_MAY_BE_HALTED)
    requested = bool(running.update(halt_state=HaltState.HALT_REQUESTED))
    if requested:
        record(
            AuditEvent.HALT_REQUESTED, actor=actor, subject=_subject(run_id), data={"reason": TerminalReason(reason)}
        )
    elif not GuardedRun.objects.filter(pk=run_id).exists():
        raise NotFound()
    return requested


def close_run(run_id: UUID, *, status: RunStatus, reason: TerminalReason) -> bool:
    """End a run with its reason; False if it has already ended."""
    running = GuardedRun.objects.filter(pk=run_id, status=RunStatus.RUNNING)
    closed = bool(running.update(status=RunStatus(status), terminal_reason=TerminalReason(reason), ended_at=Now()))
    if closed:
        data = {"status": RunStatus(status).value, "reason": TerminalReason(reason).value}
        record(AuditEvent.RUN_CLOSED, subject=_subject(run_id), data=data)
    return closed


def _subject(run_id: UUID) -> str:
    return f"run:{run_id}"
