"""What does the guard do for a session's intents? Each effect is on our own rows and happens with its settlement.

Only the guard calls these. What is written is scrubbed first, outside of any transaction: a session reads what
strangers wrote.
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
from apps.memory.memories import scrubbed
from kernel.tenancy import tenant_scope


def register() -> None:
    register_handler(Intent.RUN_PLAYBOOK, run_playbook)
    register_handler(Intent.EMIT_FINDING, emit_finding)
    register_handler(Intent.PROPOSE_MEMORY, propose_memory)
    register_handler(Intent.PROPOSE_PRECEDENT, propose_precedent)
    register_handler(Intent.NOTIFY, notify)


def run_playbook(ctx: CallContext) -> HandlerResult:
    """One reading step of a ready way of work; it changes nothing."""
    reader = data_sources.DATA_SOURCES.get(ctx.tool)
    if reader is None:
        raise _failed("playbook_missing", "There is no such way of work.")
    with tenant_scope(ctx.tenant_id):
        return HandlerResult(reader(ctx.args, ctx.context))


def emit_finding(ctx: CallContext) -> HandlerResult:
    draft = _clean(DraftFinding, ctx.args)
    write = partial(session_results.write_finding, _session(ctx), draft, phase=str(ctx.context["phase"]))
    return HandlerResult({"finding": draft.title}, on_settle=write)


def propose_memory(ctx: CallContext) -> HandlerResult:
    draft = _clean(DraftProposal, ctx.args)
    return HandlerResult(
        {"proposal": draft.title}, on_settle=partial(session_results.write_proposal, _session(ctx), draft)
    )


def propose_precedent(ctx: CallContext) -> HandlerResult:
    draft = _clean(DraftPrecedent, ctx.args)

    def see() -> None:
        session_results.record_precedent(_session(ctx), draft)

    return HandlerResult({"precedent": draft.pattern_kind}, on_settle=see)


def notify(ctx: CallContext) -> HandlerResult:
    """Delivery: the result goes where the task says. `ctx.context["output"]` is what the session came to."""
    session, route = _session(ctx), ROUTE.validate_python(ctx.args["route"])
    failed, output = bool(ctx.args.get("failed")), scrubbed(str(ctx.context.get("output") or ""))
    signal = str(ctx.args.get("signal") or "")
    reviewed = [UUID(each) for each in ctx.context.get("reviewed", ())]
    delegated = [DelegatedQuestion.model_validate(each) for each in ctx.args.get("delegated", ())]
    said: dict[str, Any] = {"delivered": "notice" if failed else route.kind}

    def deliver() -> None:
        session_results.mark_reviewed(reviewed)
        if delegated and not failed and delegation.delegate(session, delegated):
            said["delivered"] = "divided"
            return
        if signal and not failed:
            session_results.escalate(session, signal)
        if failed or isinstance(route, Notify):
            session_results.notify_owner(session, route=None if failed else route, failed=failed)  # type: ignore[arg-type]
        elif isinstance(route, MemoryUpdate) and output:
            title = f"Result of {ctx.context['task']}"[:300]
            session_results.write_proposal(session, DraftProposal(kind="memory", title=title, content=output[:5000]))
        elif isinstance(route, ChainNext):
            spawned = session_results.start_next_task(session, route.task, output=output if route.with_context else "")
            said["next"] = getattr(spawned, "code", "begun")

    return HandlerResult(said, on_settle=deliver)


def _clean(shape: type[Any], args: Mapping[str, Any]) -> Any:
    """The draft, scrubbed of secrets and personal data but names. Raises `CallFailed` for what has not the shape."""
    try:
        said: BaseModel = shape.model_validate(dict(args))
    except ValidationError:
        raise _failed("bad_arguments", "This cannot be written down: it has not the right shape.") from None
    words = {name: scrubbed(value) for name, value in said if isinstance(value, str) and name in _PROSE}
    return said.model_copy(update=words)


_PROSE = frozenset({"title", "content", "summary"})


def _session(ctx: CallContext) -> UUID:
    return UUID(str(ctx.context["session"]))


def _failed(code: str, reason: str) -> CallFailed:
    return CallFailed(code, reason, effect_free=True)
