"""Automations: the overview, and the page of one run with its receipt in words and as JSON.

Every member can see them. Members who answer can always stop a run, whether they opted in or not.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any
from uuid import UUID

from django.http import JsonResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect
from django.views.decorators.http import require_POST, require_safe

from apps.audit.queries import entries_about
from apps.autonomy import overview, queries
from apps.autonomy.artifact_files import artifact_response
from apps.autonomy.models import AutonomousSession
from apps.autonomy.receipts import build_receipt
from apps.autonomy.schemas import NotSpawned, Spawn, Spawned
from apps.autonomy.services import session_control, session_start
from apps.console.base import idempotency_key, page
from apps.console.members import ANSWERING_ROLES, DECIDING_ROLES, StaffRequest, refused, staff_view
from apps.console.names import names_for, names_of, parse_reference
from apps.console.pages.activity.feed import Sentence, describe_entry
from apps.console.pages.automations import presenter
from apps.console.pages.automations.triggers import triggers_in_words
from kernel.error_codes import ErrorCode
from kernel.errors import SilasError

SHOWN = 30
SHOWN_ENTRIES = 60


@require_safe
@staff_view()
def runs(request: StaffRequest) -> HttpResponseBase:
    glances = overview.task_overviews()
    ended = overview.finished_sessions(SHOWN + 1)
    return page(
        request,
        "console/runs.html",
        at="runs",
        live=[run_line(session) for session in overview.unfinished_sessions(SHOWN)],
        tasks=list(zip(glances, triggers_in_words([list(glance.triggers) for glance in glances]), strict=True)),
        ended=[run_line(session) for session in ended[:SHOWN]],
        more=len(ended) > SHOWN,
        allowed=queries.autonomy_settings(),
        opted=queries.has_opted_in(request.member.user.pk),
    )


@require_safe
@staff_view()
def session(request: StaffRequest, session_id: UUID) -> HttpResponseBase:
    row = queries.session(session_id)
    return page(request, "console/run.html", at="runs", **_context(request, row))


@require_safe
@staff_view()
def receipt_file(request: StaffRequest, session_id: UUID) -> HttpResponseBase:
    """Return the receipt as JSON: live during the run, as stored afterwards."""
    row = queries.session(session_id)
    headers = {"Content-Disposition": f'inline; filename="receipt-{row.pk}.json"', "Cache-Control": "no-store"}
    return JsonResponse(row.receipt or build_receipt(row), headers=headers, json_dumps_params={"indent": 2})


@require_safe
@staff_view()
def artifact_file(request: StaffRequest, artifact_id: UUID) -> HttpResponseBase:
    return artifact_response(queries.artifact(artifact_id))


@require_POST
@staff_view(*ANSWERING_ROLES)
def halt(request: StaffRequest, session_id: UUID) -> HttpResponseBase:
    """Stop the run. Stopping twice, or after the run has ended, changes nothing."""
    session_control.halt_session(session_id, user=request.member.user)
    return redirect("console-runs") if request.POST.get("back") == "runs" else redirect("console-run", session_id)


@require_POST
@staff_view(*DECIDING_ROLES)
def retry(request: StaffRequest, session_id: UUID) -> HttpResponseBase:
    return after_start(
        request, session_start.retry_session(session_id, user=request.member.user, once=idempotency_key(request))
    )


def after_start(request: StaffRequest, spawn: Spawn) -> HttpResponseBase:
    """Go to the queued run, or say why there is none without rolling back the audit entry about it."""
    match spawn:
        case Spawned(session_id=session_id):
            return redirect("console-run", session_id)
        case NotSpawned(code=code, reason=reason):
            return refused(request, SilasError(ErrorCode(code.value), reason, status=409))


def run_line(session: AutonomousSession) -> dict[str, object]:
    """Return a run as one line of a list: its status in a sentence and its cost. Runs no query."""
    run = session.run
    limits = session.frozen_limits
    receipt_fields = {
        "status": session.status,
        "terminal_reason": session.terminal_reason,
        "halt_state": run.halt_state if run else "",
        "cost_total_usd": run.cost_total if run else 0,
        "cost_reserved_usd": run.cost_reserved if run else 0,
        "max_cost_usd": limits.cost_usd,
        "trigger_kind": session.trigger_kind,
    }
    return {
        "session": session,
        "ending": presenter.ending(receipt_fields),
        "began": presenter.began(receipt_fields),
        "bar": presenter.bar(receipt_fields),
    }


def _context(request: StaffRequest, session: AutonomousSession) -> dict[str, Any]:
    known = session.receipt or build_receipt(session)
    member = request.member
    return {
        "session": session,
        "receipt": known,
        "ending": presenter.ending(known),
        "began": presenter.began(known),
        "asked_by": _asked_by(session),
        "steps": presenter.steps(known),
        "calls": presenter.calls(known),
        "bar": presenter.bar(known),
        "used": presenter.used(known),
        "egress": presenter.egress(known),
        "kept": presenter.kept(known),
        "findings": queries.findings_of(session.pk),
        "artifacts": queries.artifacts_of(session.pk),
        "proposals": queries.proposals_of(session.pk),
        "children": list(session.children.select_related("task").order_by("queued_at")),
        "entries": _entries(request, session),
        "may_halt": member.may_answer and not session.is_over,
        "may_retry": member.may_decide and session.is_over and session.task.deleted_at is None,
    }


def _asked_by(session: AutonomousSession) -> str:
    kind, _ = parse_reference(session.requested_by)
    if kind != "user":
        return ""
    return names_for([session.requested_by]).of(session.requested_by)


def _entries(request: StaffRequest, session: AutonomousSession) -> list[tuple[int, datetime, Sentence]]:
    """Return the audit entries about the run as (number, moment, sentence)."""
    subjects = [f"autonomous:{session.pk}", *([f"run:{session.run_id}"] if session.run_id else [])]
    entries = entries_about(request.member.tenant.pk, subjects, limit=SHOWN_ENTRIES)
    names = names_of(entries)
    return [(entry.seq, entry.timestamp, describe_entry(entry, names)) for entry in entries]
