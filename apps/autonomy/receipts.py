"""Receipts: what a session did, and why it ended.

Built from rows and not from the audit log, which workers may not read, at any time, so that a running or crashed
session has one too; stored with the session when it ends. A receipt holds ids, kinds, counts and amounts; of texts only
titles and the summary, which were scrubbed when written.
"""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from typing import Any

from apps.autonomy import queries
from apps.autonomy.models import Artifact, AutonomousSession, Finding, MemoryProposal, Precedent
from apps.guard.enums import Phase
from apps.guard.models import GuardedRun, ToolCall
from apps.guard.rules import format_amount
from kernel.clock import now

# What the state of an analysis that was stopped holds; one without them is whole.
_PART = frozenset({"notes", "reads"})


def build_receipt(session: AutonomousSession) -> dict[str, object]:
    """Inside a scope. The same keys for every ending, and while it runs."""
    run: GuardedRun | None = session.run
    return {
        **_cause(session),
        "continues": _continues(session),
        **_state(session, run),
        **_money(session, run),
        "phase_transitions": _phases(session),
        "plan_trace": _trace(session),
        "egress": _egress(session),
        "tool_calls": _calls(run),
        "findings": _findings(session),
        "artifacts": _artifacts(session),
        "proposals": _proposals(session),
        "precedents": _precedents(session),
        "route": _route(session),
        "children": _children(session),
        "summary": session.output,
    }


def build_short_receipt(session: AutonomousSession, error: Exception) -> dict[str, object]:
    """Why the session started and how it ended, where its other rows cannot be read; `unreadable` names the error."""
    return {**_cause(session), **_state(session, session.run), "unreadable": type(error).__name__}


def _cause(session: AutonomousSession) -> dict[str, object]:
    return {
        "session_id": str(session.pk),
        "task_id": str(session.task_id),
        "task": session.task.name,
        "trigger_kind": session.trigger_kind,
        "requested_by": session.requested_by,
        "occurrences": session.params.get("occurrences", 1),
        "attempt": session.attempt,
        "parent_id": None if session.parent_id is None else str(session.parent_id),
    }


def _continues(session: AutonomousSession) -> dict[str, object] | None:
    """The session whose work this one continues, and what it did not repeat."""
    if "resumes" not in session.params:
        return None
    done = queries.done_before(session)
    analysis = done.get(Phase.ANALYSIS, {})
    return {
        "session_id": session.params["resumes"],
        "phases": [phase for phase in (Phase.INTAKE, Phase.ANALYSIS) if _PART.isdisjoint(done.get(phase, _PART))],
        "steps": len(analysis.get("notes", {}).get("decisions", ())),
        "reads": len(analysis.get("reads", ())),
        "written": done.get(Phase.DRAFTING, {}).get("written", 0),
    }


def _state(session: AutonomousSession, run: GuardedRun | None) -> dict[str, Any]:
    return {
        "status": session.status,
        "halt_state": run.halt_state if run else "running",
        "current_phase": run.phase if run else session.phase,
        "terminal_reason": session.terminal_reason or None,
        "error_code": session.error_code or None,
        "queued_at": _iso(session.queued_at),
        "started_at": _iso(session.started_at),
        "ended_at": _iso(session.ended_at),
    }


def _money(session: AutonomousSession, run: GuardedRun | None) -> dict[str, object]:
    """Amounts as text, exact."""
    limits = session.frozen_limits
    # From the run's start, so that time in the queue does not count.
    seconds = ((session.ended_at or now()) - run.started_at).total_seconds() if run else 0.0
    return {
        "cost_total_usd": format_amount(run.cost_total if run else Decimal(0)),
        "cost_reserved_usd": format_amount(run.cost_reserved if run else Decimal(0)),
        "max_cost_usd": None if limits.cost_usd is None else format_amount(limits.cost_usd),
        "cost_cap_reached": bool(run and run.cost_cap_reached),
        "limits": limits.model_dump(mode="json", exclude_none=True),
        "used": {
            "calls": run.calls if run else 0,
            "tokens": run.input_tokens + run.output_tokens if run else 0,
            "seconds": round(max(seconds, 0.0), 3),
            "memory_writes": MemoryProposal.objects.filter(root_id=session.origin).count(),
        },
    }


def _phases(session: AutonomousSession) -> list[dict[str, object]]:
    return [
        {
            "to_phase": checkpoint.phase,
            "timestamp": _iso(checkpoint.entered_at),
            "left_at": _iso(checkpoint.left_at),
            "outcome": checkpoint.outcome or None,
        }
        for checkpoint in session.checkpoints.order_by("entered_at")
    ]


def _trace(session: AutonomousSession) -> dict[str, object] | None:
    """The planner's decisions, if a planner ran: intents and codes."""
    analysis = session.checkpoints.filter(phase="analysis").first()
    return None if analysis is None or analysis.state is None else analysis.state.get("trace")


def _egress(session: AutonomousSession) -> dict[str, object]:
    """What its texts were allowed to leave as, and how many values were replaced before a model read them, by kind."""
    analysis = session.checkpoints.filter(phase="analysis").first()
    replaced = analysis.state.get("replaced", {}) if analysis is not None and analysis.state is not None else {}
    return {"tier": session.egress, "replaced": replaced}


def _calls(run: GuardedRun | None) -> list[dict[str, object]]:
    if run is None:
        return []
    return [_call(call) for call in ToolCall.objects.filter(run=run).order_by("seq")]


def _call(call: ToolCall) -> dict[str, object]:
    fields = {"seq": call.seq, "intent": call.intent, "tool": call.tool, "outcome": call.state}
    error = {"error_code": call.error_code} if call.error_code else {}
    cost = (
        {"cost_usd": format_amount(call.charged)} if call.settled_at else {"reserved_usd": format_amount(call.reserved)}
    )
    return {**fields, **error, **cost, "timestamp": _iso(call.settled_at or call.created_at)}


def _findings(session: AutonomousSession) -> list[dict[str, object]]:
    rows = Finding.objects.filter(session=session, quarantined_at=None).order_by("created_at")
    return [
        {"id": str(row.pk), "severity": row.severity, "title": row.title, "sources": len(row.sources)} for row in rows
    ]


def _artifacts(session: AutonomousSession) -> list[dict[str, object]]:
    rows = Artifact.objects.filter(session=session, quarantined_at=None).order_by("created_at")
    return [{"id": str(row.pk), "kind": row.kind, "title": row.title, "size": row.size} for row in rows]


def _proposals(session: AutonomousSession) -> list[dict[str, object]]:
    rows = MemoryProposal.objects.filter(session=session, deleted_at=None).order_by("number")
    return [{"id": str(row.pk), "kind": row.kind, "title": row.title, "state": row.state} for row in rows]


def _precedents(session: AutonomousSession) -> list[dict[str, object]]:
    rows = Precedent.objects.filter(session=session)
    return [{"id": str(row.pk), "pattern": row.pattern_kind, "count": row.count} for row in rows]


def _route(session: AutonomousSession) -> dict[str, object]:
    """Where the result goes; the outcome is None until delivery has ended."""
    delivered = session.checkpoints.filter(phase="delivery").first()
    return {"kind": session.task.route["kind"], "outcome": (delivered.outcome or None) if delivered else None}


def _children(session: AutonomousSession) -> list[dict[str, object]]:
    rows = session.children.select_related("task").order_by("queued_at")
    return [
        {"session_id": str(row.pk), "task": row.task.name, "kind": row.trigger_kind, "status": row.status}
        for row in rows
    ]


def _iso(moment: datetime | None) -> str | None:
    return None if moment is None else moment.isoformat()
