"""Help staff in a conversation: one request, one guarded run, one result that a person reads before anything is sent.

Nothing here writes into a conversation, calls a tool or reaches a visitor. A request passes the input gates with its
draft, its result passes the response gates as the bot's would, and a record of both stays without any text. `assist`
runs outside of any scope; called by the console and the REST API, never by a model.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Coroutine
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, time
from decimal import Decimal
from typing import assert_never
from uuid import UUID, uuid4

from django.core.cache import cache
from django.utils.formats import date_format

from apps.access.grants import grant_of
from apps.access.rules import AccessController
from apps.audit.enums import AuditEvent
from apps.audit.services import record
from apps.copilot import forms, queries, replies, texts, trace
from apps.copilot.enums import REWRITES, AssistanceKind, AssistanceStatus
from apps.copilot.models import Assistance
from apps.copilot.runs import MOST_USD, Job
from apps.copilot.schemas import MAX_TEXT, AssistanceRequest, AssistanceResult, Draft
from apps.gates.allowance import Allowance
from apps.gates.enums import GateTrigger
from apps.gates.schemas import GateReport
from apps.guard import queries as spending
from apps.guard import services as guard
from apps.guard.enums import Origin, Period, Phase, RefusalCode, RunStatus, TerminalReason
from apps.guard.rules import window_end
from apps.guard.schemas import Limits
from apps.inbox.staff import Staff, member_of, require_staff
from apps.persona import queries as persona
from apps.persona.services import tone_of_turn
from apps.releases.served import settings_of
from apps.sessions import gate_runs, policy, served
from apps.sessions import queries as sessions
from apps.sessions.enums import Sender
from kernel.clock import now
from kernel.error_codes import ErrorCode
from kernel.errors import NotFound, SilasError
from kernel.language import gettext
from kernel.ratelimit import fixed_window
from kernel.ratelimit.fixed_window import Exceeded, Limit
from kernel.tenancy import in_scope
from kernel.unicode_safety import escape_hidden, replace_unstorable
from llm.enums import Role
from llm.failures import ProviderFailed

# Of one member or program.
MOST_A_MINUTE = 20
# A summary reads as much of a conversation; a suggestion reads less of it.
MOST_MESSAGES = 200
# A member who switched conversations meanwhile finds the result this long.
KEPT_SECONDS = 15 * 60
_LOOKS_FOR_CANCEL_SECONDS = 0.5
_PERIODS = {RefusalCode.GLOBAL_DAILY: Period.DAY, RefusalCode.GLOBAL_MONTHLY: Period.MONTH}


async def assist(tenant_id: UUID, session_id: UUID, by: Staff, request: AssistanceRequest) -> AssistanceResult:
    """Answer one request. Outside of any scope.

    Raises 403 `forbidden_role`, 404 for a foreign conversation or an unknown form, 409 `assistance_off`, `no_model`,
    `assistance_limit` (a spending limit, with when it resets), `assistance_withheld` (a gate), `assistance_nothing`
    (there is no answer), `assistance_cancelled`, 429 `rate_limited`, 502 `assistance_failed` (the provider), 400
    `invalid_text`.
    """
    _require_text(request)
    await _count(tenant_id, by)
    job, form = await in_scope(tenant_id, _open, tenant_id, session_id, by, request)
    allowance = _allowance_of(job)
    reports: list[GateReport] = []
    draft, outcome, reason = Draft(), AssistanceStatus.FAILED, "interrupted"
    try:
        draft = await _unless_cancelled(job, _produce(job, form, allowance, reports))
        result = await _gated(job, draft, allowance, reports)
        outcome, reason = AssistanceStatus.DONE, draft.fell_back or result.blocked_by
    except SilasError as refusal:
        cancelled = refusal.code == ErrorCode.ASSISTANCE_CANCELLED
        outcome = AssistanceStatus.CANCELLED if cancelled else AssistanceStatus.REFUSED
        reason = refusal.code.value
        raise
    except guard.NotAdmitted as refused:
        outcome, reason = AssistanceStatus.REFUSED, refused.reason
        raise await in_scope(tenant_id, _over_limit, job, refused.reason) from refused
    except ProviderFailed as failure:
        reason = failure.reason
        raise SilasError(ErrorCode.ASSISTANCE_FAILED, extra={"reason": reason}) from failure
    finally:
        cost = await in_scope(tenant_id, _close, job, by, draft, outcome, reason[:60], reports)
    result = replace(result, cost_usd=cost)
    cache.set(_key(tenant_id, session_id, by.actor), result.as_kept(), KEPT_SECONDS)
    return result


def cancel(session_id: UUID, assistance_id: UUID, by: Staff) -> bool:
    """Stop a request of one's own while it runs; False if it has ended. What its model has used is charged. Inside a
    scope. Raises 404 for another's."""
    require_staff(by)
    own = Assistance.objects.filter(pk=assistance_id, session_id=session_id, actor=by.actor)
    if not own.exists():
        raise NotFound()
    changed = own.filter(status=AssistanceStatus.RUNNING).update(status=AssistanceStatus.CANCELLED)
    return bool(changed)


def last_result(session_id: UUID, by: Staff) -> AssistanceResult | None:
    """The newest result of this member in a conversation, while it is kept. Inside a scope."""
    require_staff(by)
    session = sessions.session_by_id(session_id)
    kept = cache.get(_key(session.tenant_id, session_id, by.actor))
    return AssistanceResult.from_kept(kept) if kept else None


def forget_results(session_ids: Collection[UUID]) -> None:
    """Delete the results that members are still shown for these conversations. Inside a scope."""
    rows = Assistance.objects.filter(session_id__in=list(session_ids)).values_list("tenant_id", "session_id", "actor")
    cache.delete_many([_key(*row) for row in rows.distinct()])


def _require_text(request: AssistanceRequest) -> None:
    text = request.text.strip()
    if request.kind in REWRITES and not text:
        raise SilasError(ErrorCode.INVALID_TEXT, gettext("Write a draft first."))
    if len(text) > MAX_TEXT or "\0" in text:
        raise SilasError(ErrorCode.INVALID_TEXT, gettext("Write at most 4,000 characters."))


async def _count(tenant_id: UUID, by: Staff) -> None:
    limit = Limit(f"copilot:{tenant_id}:{by.actor}", MOST_A_MINUTE, 60)
    used_up = await fixed_window.atry_consume([limit], otherwise="assistance_not_counted")
    if isinstance(used_up, Exceeded):
        text = gettext("You've asked for assistance very often. Wait a moment and try again.")
        raise SilasError(ErrorCode.RATE_LIMITED, text, extra={"retry_after": max(1, round(used_up.seconds))})


def _open(tenant_id: UUID, session_id: UUID, by: Staff, request: AssistanceRequest) -> tuple[Job, forms.Form | None]:
    """Check who asks for what, read everything that the request needs, and open its run and its record."""
    require_staff(by)
    session = sessions.session_by_id(session_id)
    if request.kind not in queries.kinds_on(session.deployment_id):
        raise SilasError(ErrorCode.ASSISTANCE_OFF)
    said = tuple(sessions.said_until(session.pk, session.seq, limit=MOST_MESSAGES).value)
    frozen = policy.load_usable(session.deployment)
    frozen = policy.as_named(frozen, [one.text for one in said if one.sender == Sender.VISITOR])
    form = None
    if request.kind == AssistanceKind.FILL_FORM:
        form = forms.form_named(request.form, forms.forms_in(session.deployment_id, frozen))
    axes = persona.baseline_of(session.deployment_id).value
    serving = settings_of(session.deployment, served.release_for(session).value, axes=axes)
    assistance_id = request.request_id or uuid4()
    if Assistance.objects.filter(pk=assistance_id).exists():
        raise SilasError(ErrorCode.IDEMPOTENCY_KEY_REUSED)
    run = guard.open_run(
        Origin.WORK,
        assistance_id,
        deployment_id=session.deployment_id,
        phase=Phase.EXECUTION,
        critical=False,
        allow=(),
        limits=Limits(cost_usd=MOST_USD),
    )
    Assistance.objects.create(
        id=assistance_id,
        session=session,
        member=member_of(by),
        actor=by.actor,
        kind=request.kind,
        run_id=run.pk,
        created_at=now(),
    )
    job = Job(
        tenant_id=tenant_id,
        assistance_id=assistance_id,
        session=session,
        request=request,
        policy=frozen,
        settings=serving,
        access=AccessController(frozen.levels, grant_of(session)).at(now()),
        said=said,
        run=run.ref,
    )
    message = job.last_message
    if serving.axes is not None and message is not None:
        job = replace(job, tone=tone_of_turn(serving.axes, session.mood, message.shown))
    return job, form


async def _unless_cancelled(job: Job, producing: Coroutine[object, object, Draft]) -> Draft:
    """Wait for the draft, and look meanwhile whether its member has cancelled the request."""
    work, watch = asyncio.create_task(producing), asyncio.create_task(_cancelled(job))
    try:
        await asyncio.wait({work, watch}, return_when=asyncio.FIRST_COMPLETED)
        if not work.done():
            raise SilasError(ErrorCode.ASSISTANCE_CANCELLED)
        return work.result()
    finally:
        for task in (work, watch):
            task.cancel()
            with suppress(asyncio.CancelledError, Exception):
                await task


async def _cancelled(job: Job) -> None:
    while True:
        await asyncio.sleep(_LOOKS_FOR_CANCEL_SECONDS)
        if await in_scope(job.tenant_id, queries.is_cancelled, job.assistance_id):
            return


async def _produce(job: Job, form: forms.Form | None, allowance: Allowance, reports: list[GateReport]) -> Draft:
    if job.request.kind in REWRITES:
        job = replace(job, draft=await _input_gated(job, allowance, reports))
    match job.request.kind:
        case AssistanceKind.SUGGEST:
            return await replies.suggest(job)
        case AssistanceKind.BOT_PREVIEW:
            return await replies.preview(job)
        case AssistanceKind.SUMMARY:
            return await texts.summarize(job)
        case AssistanceKind.TRANSLATE_MESSAGE:
            return await texts.translate_message(job)
        case AssistanceKind.FILL_FORM:
            assert form is not None
            return await forms.fill(job, form)
        case (
            AssistanceKind.SHORTER
            | AssistanceKind.FRIENDLIER
            | AssistanceKind.FORMAL
            | AssistanceKind.SPELLING
            | AssistanceKind.TRANSLATE_REPLY
        ):
            return await texts.rewrite(job)
        case _:
            assert_never(job.request.kind)


async def _input_gated(job: Job, allowance: Allowance, reports: list[GateReport]) -> str:
    """The draft as the gates let models read it. No gate takes it for a claim of an identity."""
    context = {"message": job.request.text.strip(), "sender": "staff", "recent": [], "verified_gates": []}
    without = gate_runs.idle_gates(job.policy)
    report = await gate_runs.run_policy_gates(
        job.tenant_id, job.policy, GateTrigger.EVERY_USER_MESSAGE, context, allowance=allowance, without=without
    )
    reports.append(report)
    if problem := report.blocked or report.needs_approval:
        raise _withheld(problem.gate_name)
    return str(report.context.get("message", job.request.text))


async def _gated(job: Job, draft: Draft, allowance: Allowance, reports: list[GateReport]) -> AssistanceResult:
    """The draft as the response gates let it pass; of a form its values, each on a line of its own."""
    result = AssistanceResult(
        id=job.assistance_id,
        kind=job.request.kind,
        text=_plain(draft.text),
        model=draft.model_name,
        cost_usd=MOST_USD,
        sources=draft.sources,
        fields=tuple(replace(one, value=_plain(one.value), line=_plain(one.line)) for one in draft.fields),
        tools=draft.tools,
        hands_over=draft.hands_over,
        fell_back=draft.fell_back,
        marked=draft.marked,
    )
    lines = [" ".join(one.value.split()) for one in result.fields]
    text = result.text or "\n".join(lines)
    if not text.strip():
        return result
    message = job.last_message
    context = {"response": text, "message": message.shown if message else "", "sender": "bot"}
    report = await gate_runs.run_policy_gates(
        job.tenant_id, job.policy, GateTrigger.EVERY_AGENT_RESPONSE, context, allowance=allowance
    )
    reports.append(report)
    if problem := report.blocked or report.needs_approval:
        if job.request.kind == AssistanceKind.BOT_PREVIEW:
            return replace(result, text="", sources=(), blocked_by=problem.gate_name)
        raise _withheld(problem.gate_name)
    passed = str(report.context.get("response", text))
    if result.text:
        return replace(result, text=passed)
    values = passed.split("\n")
    if len(values) != len(lines):
        raise _withheld("")
    rewritten = (
        one if value == line else replace(one, value=value, line="", verbatim=False)
        for one, line, value in zip(result.fields, lines, values, strict=True)
    )
    return replace(result, fields=tuple(rewritten))


def _plain(text: str) -> str:
    return escape_hidden(replace_unstorable(text))


def _withheld(gate: str) -> SilasError:
    if not gate:
        return SilasError(ErrorCode.ASSISTANCE_WITHHELD)
    text = gettext("One of your rules withholds this text: {rule}.").format(rule=gate.replace("_", " "))
    return SilasError(ErrorCode.ASSISTANCE_WITHHELD, text, extra={"gate": gate})


def _over_limit(job: Job, reason: str) -> SilasError:
    """Which limit refused the run, and when it resets. Inside a scope."""
    code = RefusalCode(reason) if reason in RefusalCode.values else None
    period = _PERIODS.get(code) if code else None
    if period is None:
        return SilasError(ErrorCode.ASSISTANCE_LIMIT, str(code.label) if code else None, extra={"reason": reason})
    budget = spending.tightest_budget(job.session.deployment_id, period)
    if budget is None:
        return SilasError(ErrorCode.ASSISTANCE_LIMIT, str(RefusalCode(reason).label), extra={"reason": reason})
    resets = window_end(period, budget.window)
    day = date_format(datetime.combine(resets, time.min, UTC).date(), "j F")
    whose = gettext("this chatbot") if budget.ref == job.session.deployment_id else gettext("your company")
    text = (
        gettext("The daily limit of {amount} for {holder} is reached. It resets on {day} at midnight.")
        if period == Period.DAY
        else gettext("The monthly limit of {amount} for {holder} is reached. It resets on {day} at midnight.")
    )
    said = text.format(amount=f"${(budget.limit or 0):,.2f}", holder=whose, day=day)
    return SilasError(
        ErrorCode.ASSISTANCE_LIMIT, said, extra={"reason": reason, "period": period.value, "resets": str(resets)}
    )


def _close(
    job: Job, by: Staff, draft: Draft, outcome: AssistanceStatus, reason: str, reports: list[GateReport]
) -> Decimal:
    """End the run and the record, and write both into the log; returns what the run has cost."""
    ended = {
        AssistanceStatus.DONE: (RunStatus.COMPLETED, TerminalReason.COMPLETED),
        AssistanceStatus.CANCELLED: (RunStatus.HALTED, TerminalReason.CANCELLED),
    }.get(outcome, (RunStatus.FAILED, TerminalReason.FAILED))
    guard.close_run(job.run.run_id, status=ended[0], reason=ended[1])
    cost = spending.cost_of_run(job.run.run_id)
    Assistance.objects.filter(pk=job.assistance_id).update(
        status=outcome,
        reason=reason,
        model_name=draft.model_name,
        cost_usd=cost,
        context=trace.record_of(job, draft),
        finished_at=now(),
    )
    subject = f"session:{job.session.pk}"
    for report in reports:
        for event, data in report.audit:
            record(AuditEvent(event), subject=subject, data=data)
    data = {"kind": job.request.kind.value, "outcome": outcome.value, "assistance": str(job.assistance_id)}
    record(AuditEvent.STAFF_ASSISTANCE, actor=by.actor, subject=subject, data=data)
    return cost


def _allowance_of(job: Job) -> Allowance:
    """What the gates of this request may ask: the planner's model, in the same run."""
    judge = guard.GateJudge(
        job.run, job.settings.model_for(Role.PLANNER), asyncio.get_running_loop(), keys=job.session.deployment.keys
    )
    return Allowance(ask=judge)


def _key(tenant_id: UUID, session_id: UUID, actor: str) -> str:
    return f"silas.copilot:{tenant_id}:{session_id}:{actor}"
