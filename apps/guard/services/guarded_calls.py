"""Make a guarded call: admit in a short transaction, dispatch with no lock held, settle in another (contract autonomy
C)."""

from __future__ import annotations

import asyncio
import inspect
import logging
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial

from django.db import connection
from opentelemetry import metrics

from apps.gates.allowance import Allowance
from apps.gates.content import DOCUMENT, TOOL, check_content
from apps.gates.enums import GateTrigger
from apps.gates.schemas import GateReport
from apps.gates.services import check_gates
from apps.guard import registry, signals
from apps.guard.enums import CallState, Intent, RefusalCode
from apps.guard.schemas import (
    Admitted,
    Call,
    CallContext,
    CallFailed,
    CallOutcome,
    Done,
    Failed,
    HandlerResult,
    Refused,
    RunRef,
)
from apps.guard.services.admission import admit_call, precheck
from apps.guard.services.runs import record_mark
from apps.guard.services.settlement import CallLost, give_up_call, settle_call
from kernel import fault_points, tracing
from kernel.error_codes import ErrorCode
from kernel.errors import SilasError, error_location
from kernel.tenancy import in_scope
from kernel.tracing import SpanName

_log = logging.getLogger(__name__)
_durations = metrics.get_meter("silas.guard").create_histogram(
    "guarded_call_duration",
    unit="s",
    description="Guarded calls, from asked to settled or refused",
    explicit_bucket_boundaries_advisory=(0.01, 0.05, 0.1, 0.5, 1, 2, 5, 10, 30, 60, 300),
)
# What a span says of a failure; a tool's own code is no word of ours.
_KNOWN_CODES = frozenset({*ErrorCode, *RefusalCode.values, "effect_failed", "timeout", "tool_failed"})


async def guarded_call(
    run: RunRef,
    intent: Intent,
    call: Call,
    *,
    context: Mapping[str, object] | None = None,
    allowance: Allowance | None = None,
) -> CallOutcome:
    """Carry out the call if it is admitted, and return its outcome.

    R5 → R6 → marks → `on_tool_call` gates → safety → approval → R4 → admit → dispatch → settle. `context` is passed to
    the handler and stored nowhere; `allowance` limits what the gates may ask a model. A refusal or a failing tool never
    raises. If the caller is cancelled, `handle_lost_calls` ends the call.
    """
    begun = time.monotonic()
    with tracing.span(SpanName.TOOL, intent=intent) as span:
        outcome = await _call(run, intent, call, context=context or {}, allowance=allowance)
        name = type(outcome).__name__.lower()
        span.set(outcome=name)
        if isinstance(outcome, Done | Failed):
            # Only a tool that exists: the name of any other is a model's word.
            span.set(tool=call.tool)
            span.rename(SpanName.TOOL, call.tool)
        if isinstance(outcome, Failed | Refused):
            span.fail(outcome.code if outcome.code in _KNOWN_CODES else "_OTHER")
    _durations.record(time.monotonic() - begun, {"intent": intent.value, "outcome": name})
    return outcome


async def _call(
    run: RunRef, intent: Intent, call: Call, *, context: Mapping[str, object], allowance: Allowance | None
) -> CallOutcome:
    handler = registry._handler_of(intent)
    report: GateReport | None = None
    if call.gates:
        refused = await in_scope(run.tenant_id, precheck, run, intent, call)
        if refused is not None:
            return refused
        # Gates may run scripts for seconds: in a thread, outside of any transaction.
        content = {"tool_name": call.tool, "tool_args": dict(call.args)}
        report = await asyncio.to_thread(
            check_gates, call.gates, GateTrigger.ON_TOOL_CALL, content, allowance=allowance
        )
        # If they changed the arguments, the digest and with it the needed approval are different.
        call = replace(call, args=report.context.get("tool_args", call.args))
    policy = registry._policies.get(intent)
    bound_policy = partial(policy, call.tool, context) if policy else None
    admitted = await in_scope(run.tenant_id, admit_call, run, intent, call, report, policy=bound_policy)
    if not isinstance(admitted, Admitted):
        return admitted
    fault_points.reach("guard.before_dispatch")
    outcome = await _carry_out(handler, admitted, context)

    # The result, or the tool's own words for a failure, are marked if a gate finds instructions in them.
    said = outcome.value if isinstance(outcome, Done) else outcome.reason
    kind = DOCUMENT if intent is Intent.RETRIEVE_CHUNKS else TOOL
    # After the settlement: what the tool has done and cost stands, also if its words are marked.
    mark = await asyncio.to_thread(
        check_content, said, call.gates, kind=kind, name=call.tool, ref=str(admitted.call_id)
    )
    if mark is None:
        return outcome
    await in_scope(run.tenant_id, record_mark, run, mark)
    return replace(outcome, mark=mark)


async def _carry_out(handler: registry.Handler, admitted: Admitted, context: Mapping[str, object]) -> Done | Failed:
    """Dispatch, then settle. Any error of a handler becomes `Failed`; only `CallFailed` may promise no effect."""
    run, call = admitted.run, admitted.call
    call_context = CallContext(
        tenant_id=run.tenant_id,
        run_id=run.run_id,
        call_id=admitted.call_id,
        tool=call.tool,
        args=call.args,
        effect_key=admitted.effect_key,
        context=context,
    )
    try:
        async with asyncio.timeout(call.patience_seconds):
            if inspect.iscoroutinefunction(handler):
                result = await handler(call_context)
            else:
                result = await asyncio.to_thread(_in_thread, handler, call_context)
        assert isinstance(result, HandlerResult)
    except CallFailed as failure:
        return await _settle_failed(admitted, failure)
    except TimeoutError:
        # A handler's thread cannot be stopped and may still have its effect, so its end is unknown. The sweep for lost
        # calls may have given it up already.
        with suppress(CallLost):
            await in_scope(run.tenant_id, give_up_call, admitted, error_code="timeout")
        return Failed("timeout", "It took too long.", uncertain=True)
    except Exception as error:  # noqa: BLE001 (a handler's error ends its own call only)
        _log.error("guarded_call_failed run=%s intent=%s error=%s", run.run_id, admitted.intent, error_location(error))
        # Cost and effect are unknown: the estimate is charged, and the effect key stays used.
        return await _settle_failed(admitted, CallFailed("tool_failed", "It failed unexpectedly.", cost=None))
    fault_points.reach("guard.after_dispatch")

    def effect() -> None:
        if result.on_settle is not None:
            result.on_settle()
        if signals.ATTEMPT in context:
            signals.call_done(admitted, result.value, context)

    # The effect is in the same transaction: if it is refused there, it has not happened.
    step = partial(settle_call, admitted, CallState.EXECUTED, cost=result.cost, on_settle=effect)
    try:
        charged = await in_scope(run.tenant_id, step)
    except CallLost as lost:
        return Failed(lost.code, lost.message, uncertain=True)
    except SilasError as refusal:
        undone = CallFailed(refusal.code, refusal.message, cost=result.cost, effect_free=True)
        return await _settle_failed(admitted, undone)
    except Exception as error:  # noqa: BLE001 (the effect's own code failed; its transaction is rolled back)
        _log.error(
            "guarded_effect_failed run=%s intent=%s error=%s", run.run_id, admitted.intent, error_location(error)
        )
        undone = CallFailed("effect_failed", "Its effect could not be stored.", cost=result.cost, effect_free=True)
        return await _settle_failed(admitted, undone)
    fault_points.reach("guard.after_settle")
    return Done(result.value, charged, admitted.call_id)


def _in_thread(handler: Callable[[CallContext], object], context: CallContext) -> object:
    try:
        return handler(context)
    finally:
        # Django closes a thread's connection at the end of a request, which never comes in a thread of this pool.
        connection.close()


async def _settle_failed(admitted: Admitted, failure: CallFailed) -> Failed:
    step = partial(settle_call, admitted, CallState.ERROR, error_code=failure.code, effect_free=failure.effect_free)
    try:
        await in_scope(admitted.run.tenant_id, step, cost=failure.cost)
    except CallLost as lost:
        return Failed(lost.code, lost.message, uncertain=True)
    return Failed(failure.code, failure.reason, uncertain=admitted.acting and not failure.effect_free)
