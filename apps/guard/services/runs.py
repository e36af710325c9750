"""How does a run begin, how is it narrowed, stopped and ended? Inside the caller's scope."""

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

    `allow` None narrows nothing below phase and level, an empty list allows no tool. `task_ref`: the task whose budget
    pays too. `critical` runs go on where the tenant's limit pauses only the others; without a word, everything that
    somebody waits for is critical and what runs unattended is not. `marked`: it goes on with what another run said
    that had read instructions to the assistant.
    """
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


def keep_mark(ref: RunRef, mark: ContentMark) -> None:
    """A model of this run is about to read marked content: from here on the run may do less (ADR 107)."""
    GuardedRun.objects.filter(pk=ref.run_id).update(content_marks=F("content_marks") + 1, marked_turn=ref.turn)
    event, data = mark.note
    record(AuditEvent(event), subject=_subject(ref.run_id), data=data)


def pass_mark_on(run_id: UUID, *, to: UUID) -> None:
    """What was written under one run is about to be read under another, which is marked if the first one is."""
    if GuardedRun.objects.filter(pk=run_id, content_marks__gt=0).exists():
        GuardedRun.objects.filter(pk=to, content_marks=0).update(content_marks=1)


def narrow(run_id: UUID, *, allow: Collection[str]) -> GuardedRun:
    """Take tools away from a run: it keeps those of its own that `allow` names too, and never gains one."""
    run = _lock(run_id)
    run.allow = sorted(set(allow) if run.allow is None else set(run.allow) & set(allow))
    run.save(update_fields=["allow"])
    return run


def enter_phase(run_id: UUID, phase: Phase) -> bool:
    """Let a run that works alone go on to its next phase; False for one that is over. Any other step the database
    refuses (`IntegrityError`)."""
    running = GuardedRun.objects.filter(pk=run_id, status=RunStatus.RUNNING)
    entered = bool(running.update(phase=Phase(phase)))
    if entered:
        record(AuditEvent.PHASE_TRANSITION, subject=_subject(run_id), data={"to_phase": Phase(phase).value})
    return entered


def halt(run_id: UUID, *, reason: TerminalReason = TerminalReason.EXTERNAL_HALT, actor: str = "system") -> bool:
    """Ask a run to stop at its next tool boundary; waits for no call under way. False when it is stopped or over."""
    running = GuardedRun.objects.filter(pk=run_id, status=RunStatus.RUNNING, halt_state__in=_MAY_BE_HALTED)
    asked = bool(running.update(halt_state=HaltState.HALT_REQUESTED))
    if asked:
        record(
            AuditEvent.HALT_REQUESTED, actor=actor, subject=_subject(run_id), data={"reason": TerminalReason(reason)}
        )
    elif not GuardedRun.objects.filter(pk=run_id).exists():
        raise NotFound("run")
    return asked


def close_run(run_id: UUID, *, status: RunStatus, reason: TerminalReason) -> bool:
    """End a run for good, with its reason; False when it is over already."""
    running = GuardedRun.objects.filter(pk=run_id, status=RunStatus.RUNNING)
    closed = bool(running.update(status=RunStatus(status), terminal_reason=TerminalReason(reason), ended_at=Now()))
    if closed:
        data = {"status": RunStatus(status).value, "reason": TerminalReason(reason).value}
        record(AuditEvent.RUN_CLOSED, subject=_subject(run_id), data=data)
    return closed


def _lock(run_id: UUID) -> GuardedRun:
    run: GuardedRun | None = GuardedRun.objects.select_for_update(no_key=True).filter(pk=run_id).first()
    if run is None:
        raise NotFound("run")
    return run


def _subject(run_id: UUID) -> str:
    return f"run:{run_id}"
