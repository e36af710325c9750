"""Handlers of the guarded calls that sessions make. Only the guard calls them.

Each effect is on this room's rows and is written with the call's settlement. Texts are scrubbed first, outside of any
transaction, because sessions read what strangers wrote.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any
from uuid import UUID

from pydantic import BaseModel, ValidationError

from apps.autonomy import data_sources
from apps.autonomy.schemas import (
    ROUTE,
    ChainNext,
    DelegatedQuestion,
    DraftArtifact,
    DraftFinding,
    DraftPrecedent,
    DraftProposal,
    MemoryUpdate,
    Notify,
)
from apps.autonomy.services import delegation, session_results
from apps.guard.enums import Intent
from apps.guard.registry import register as register_handler
from apps.guard.schemas import CallContext, CallFailed, HandlerResult
from apps.memory.memories import scrub
from kernel.tenancy import tenant_scope

# Fields of drafts that hold prose.
_PROSE = frozenset({"title", "content", "summary"})


def register() -> None:
    register_handler(Intent.RUN_PLAYBOOK, run_playbook)
    register_handler(Intent.EMIT_FINDING, emit_finding)
    register_handler(Intent.EMIT_ARTIFACT, emit_artifact)
    register_handler(Intent.PROPOSE_MEMORY, propose_memory)
    register_handler(Intent.PROPOSE_PRECEDENT, propose_precedent)
    register_handler(Intent.NOTIFY, notify)


def run_playbook(ctx: CallContext) -> HandlerResult:
    """One reading step of a built-in workflow; it changes nothing."""
    source = data_sources.DATA_SOURCES.get(ctx.tool)
    if source is None:
        raise _failed("playbook_missing", "There is no such built-in workflow.")
    with tenant_scope(ctx.tenant_id):
        return HandlerResult(source(ctx.args, ctx.context))


def emit_finding(ctx: CallContext) -> HandlerResult:
    draft = _clean(DraftFinding, ctx.args)
    write = partial(session_results.write_finding, _session(ctx), draft, phase=str(ctx.context["phase"]))
    return HandlerResult({"finding": draft.title}, on_settle=write)


def emit_artifact(ctx: CallContext) -> HandlerResult:
    draft = _clean(DraftArtifact, ctx.args)
    rows = tuple(tuple(scrub(cell) for cell in row) for row in draft.rows)
    write = partial(session_results.write_artifact, _session(ctx), draft.model_copy(update={"rows": rows}))
    return HandlerResult({"artifact": draft.title}, on_settle=write)


def propose_memory(ctx: CallContext) -> HandlerResult:
    draft = _clean(DraftProposal, ctx.args)
    write = partial(session_results.write_proposal, _session(ctx), draft)
    return HandlerResult({"proposal": draft.title}, on_settle=write)


def propose_precedent(ctx: CallContext) -> HandlerResult:
    draft = _clean(DraftPrecedent, ctx.args)

    def write() -> None:
        session_results.record_precedent(_session(ctx), draft)

    return HandlerResult({"precedent": draft.pattern_kind}, on_settle=write)


def notify(ctx: CallContext) -> HandlerResult:
    """Deliver the result where the task's route says. `ctx.context["output"]` is the session's result."""
    session, route = _session(ctx), ROUTE.validate_python(ctx.args["route"])
    failed, output = bool(ctx.args.get("failed")), scrub(str(ctx.context.get("output") or ""))
    signal = str(ctx.args.get("signal") or "")
    reviewed = [UUID(question_id) for question_id in ctx.context.get("reviewed", ())]
    present = ctx.context.get("present")
    delegated = [DelegatedQuestion.model_validate(question) for question in ctx.args.get("delegated", ())]
    result: dict[str, object] = {"delivered": "notice" if failed else route.kind}

    def deliver() -> None:
        session_results.mark_reviewed(reviewed)
        if present is not None and not failed:
            session_results.close_gone_findings(session, present)
        if delegated and not failed and delegation.delegate(session, delegated):
            # The session that collects the answers delivers them; this one delivers nothing itself.
            result["delivered"] = "divided"
            return
        if signal and not failed:
            session_results.escalate(session, signal)
        if failed or isinstance(route, Notify):
            notice = route if isinstance(route, Notify) and not failed else None
            session_results.notify_owner(session, route=notice, failed=failed)
        elif isinstance(route, MemoryUpdate) and output:
            title = f"Result of {ctx.context['task']}"[:300]
            session_results.write_proposal(session, DraftProposal(kind="memory", title=title, content=output[:5000]))
        elif isinstance(route, ChainNext):
            spawned = session_results.start_next_task(session, route.task, output=output if route.with_context else "")
            result["next"] = getattr(spawned, "code", "begun")

    return HandlerResult(result, on_settle=deliver)


def _clean(shape: type[Any], args: Mapping[str, object]) -> Any:
    """The draft without secrets and personal data other than names. Raises `CallFailed` for a malformed one."""
    try:
        draft: BaseModel = shape.model_validate(dict(args))
    except ValidationError:
        raise _failed("bad_arguments", "This result is malformed and was not saved.") from None
    prose = {name: scrub(value) for name, value in draft if isinstance(value, str) and name in _PROSE}
    return draft.model_copy(update=prose)


def _session(ctx: CallContext) -> UUID:
    return UUID(str(ctx.context["session"]))


def _failed(code: str, reason: str) -> CallFailed:
    return CallFailed(code, reason, effect_free=True)
