"""What runs by itself, and how did it go? All of it at one look; one session as its receipt, in words and as JSON.

Seeing is for every member. Stopping is for whoever answers, always: it asks nobody whether they opted in.
"""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.http import JsonResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect
from django.views.decorators.http import require_POST, require_safe

from apps.audit.queries import entries_about
from apps.autonomy import overview, queries
from apps.autonomy.models import AutonomousSession
from apps.autonomy.receipts import build_receipt
from apps.autonomy.schemas import NotSpawned, Spawn, Spawned
from apps.autonomy.services import session_control, session_start
from apps.console import receipts
from apps.console.members import ANSWERING_ROLES, DECIDING_ROLES, StaffRequest, refused, staff_view
from apps.console.names import data_of, names_for, names_of, parted
from apps.console.narrative import tell
from apps.console.views.pages import mark_of, page
from apps.console.views.whens import told_whens
from kernel.errors import SilasError

SHOWN = 30
PROOF = 60


@require_safe
@staff_view()
def runs(request: StaffRequest) -> HttpResponseBase:
    glances = overview.task_overviews()
    ended = overview.finished_sessions(SHOWN + 1)
    return page(
        request,
        "console/runs.html",
        at="runs",
        live=[drawn(session) for session in overview.unfinished_sessions(SHOWN)],
        tasks=list(zip(glances, told_whens([list(one.triggers) for one in glances]), strict=True)),
        ended=[drawn(session) for session in ended[:SHOWN]],
        more=len(ended) > SHOWN,
        allowed=queries.autonomy_settings(),
        opted=queries.has_opted_in(request.member.user.pk),
    )


@require_safe
@staff_view()
def session(request: StaffRequest, session_id: UUID) -> HttpResponseBase:
    found = queries.session(session_id)
    return page(request, "console/run.html", at="runs", **_shown(request, found))


@require_safe
@staff_view()
def receipt_file(request: StaffRequest, session_id: UUID) -> HttpResponseBase:
    """The receipt as it is, for machines: live while it runs, as it was stored once it is over."""
    found = queries.session(session_id)
    headers = {"Content-Disposition": f'inline; filename="receipt-{found.pk}.json"', "Cache-Control": "no-store"}
    return JsonResponse(found.receipt or build_receipt(found), headers=headers, json_dumps_params={"indent": 2})


@require_POST
@staff_view(*ANSWERING_ROLES)
def halt(request: StaffRequest, session_id: UUID) -> HttpResponseBase:
    """Answered at once, whatever is under way; a second press, or one that comes too late, changes nothing."""
    session_control.halt_session(session_id, user=request.member.user)
    return redirect("console-runs") if request.POST.get("back") == "runs" else redirect("console-run", session_id)


@require_POST
@staff_view(*DECIDING_ROLES)
def retry(request: StaffRequest, session_id: UUID) -> HttpResponseBase:
    return begun(request, session_start.retry_session(session_id, user=request.member.user, once=mark_of(request)))


def begun(request: StaffRequest, spawn: Spawn) -> HttpResponseBase:
    """To the session that was queued; or why there is none, without losing what was written down about it."""
    match spawn:
        case Spawned(session_id=session_id):
            return redirect("console-run", session_id)
        case NotSpawned(code=code, reason=reason):
            return refused(request, SilasError(code.value, reason, status=409))


def drawn(session: AutonomousSession) -> dict[str, Any]:
    """A session on one line: its money, and how it stands in a sentence; no query."""
    run = session.run
    limits = session.frozen_limits
    said = {
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
        "ending": receipts.ending(said),
        "began": receipts.began(said),
        "bar": receipts.bar(said),
    }


def _shown(request: StaffRequest, session: AutonomousSession) -> dict[str, Any]:
    known = session.receipt or build_receipt(session)
    member = request.member
    return {
        "session": session,
        "receipt": known,
        "ending": receipts.ending(known),
        "began": receipts.began(known),
        "asked_by": _asked_by(session),
        "steps": receipts.steps(known),
        "calls": receipts.calls(known),
        "bar": receipts.bar(known),
        "used": receipts.used(known),
        "findings": queries.findings_of(session.pk),
        "proposals": queries.proposals_of(session.pk),
        "children": list(session.children.select_related("task").order_by("queued_at")),
        "proof": _proof(request, session),
        "may_halt": member.may_answer and not session.is_over,
        "may_retry": member.may_decide and session.is_over and session.task.deleted_at is None,
    }


def _asked_by(session: AutonomousSession) -> str:
    kind, _ = parted(session.requested_by)
    if kind != "user":
        return ""
    return names_for([session.requested_by]).of(session.requested_by)


def _proof(request: StaffRequest, session: AutonomousSession) -> list[tuple[int, Any, Any]]:
    """What the log says of it, told: number, moment and sentence."""
    subjects = [f"autonomous:{session.pk}", *([f"run:{session.run_id}"] if session.run_id else [])]
    entries = entries_about(request.member.tenant.pk, subjects, limit=PROOF)
    names = names_of(entries)
    return [
        (one.seq, one.timestamp, tell(one.event, actor=one.actor, subject=one.subject, data=data_of(one), names=names))
        for one in entries
    ]
