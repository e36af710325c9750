"""What a gate backtest reads from conversations: recorded texts and calls, the gates of a turn, and who asks models.

Visitors' messages as they were written, with the same visitor's message before; answers as they went out, so that what
a gate withheld is not among them; calls of planned work with their arguments. Look-ups and single steps of work are not
recorded.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from decimal import Decimal
from functools import partial
from typing import Any

from django.contrib.postgres.expressions import ArraySubquery
from django.db.models import OuterRef, QuerySet

from apps.gates.allowance import AskModel
from apps.gates.backtest.source import BacktestSource, Recorded, TurnGates, register_source
from apps.gates.enums import GateTrigger
from apps.gates.models import Gate
from apps.gates.schemas import GateSpec
from apps.guard import services as guard
from apps.guard.enums import Origin, Phase, RunStatus, TerminalReason
from apps.guard.schemas import Limits, RunRef
from apps.releases.served import live_settings
from apps.sessions import policy
from apps.sessions.enums import EntryKind, Sender
from apps.sessions.models import ChatSession, ChronicleEntry
from apps.sessions.rules import CLAIM_MESSAGES
from apps.tenants.models import Deployment
from apps.work.models import WorkItem
from kernel.canonical import canonical_json
from kernel.tenancy import in_scope
from llm.enums import Role

_MOST_CONVERSATIONS = 300
_EXCERPT = 200
_SENDERS = {GateTrigger.EVERY_USER_MESSAGE: Sender.VISITOR, GateTrigger.EVERY_AGENT_RESPONSE: Sender.BOT}


def recorded(deployment: Deployment, triggers: set[GateTrigger], many: int) -> tuple[Recorded, ...]:
    """The newest `many` of these triggers, newest first."""
    found: list[Recorded] = []
    for trigger in sorted(triggers - {GateTrigger.AFTER_STEP}):
        said = trigger in _SENDERS
        found += _said(deployment, trigger, many) if said else _asked_for(deployment, many)
    return tuple(sorted(found, key=lambda each: each.at, reverse=True)[:many])


def _said(deployment: Deployment, trigger: GateTrigger, many: int) -> list[Recorded]:
    """The newest messages of the conversations that were last active."""
    held = ChatSession.objects.filter(deployment=deployment).order_by("-last_active_at")
    sessions = list(held.values_list("pk", flat=True)[:_MOST_CONVERSATIONS])
    rows = _messages(_SENDERS[trigger]).filter(session_id__in=sessions).annotate(before=ArraySubquery(_just_before()))
    return [_message(trigger, row) for row in rows.order_by("-created_at")[:many]]


def _messages(sender: Sender) -> QuerySet[ChronicleEntry]:
    rows: QuerySet[ChronicleEntry] = ChronicleEntry.objects.filter(kind=EntryKind.MESSAGE, sender=sender)
    return rows


def _just_before() -> QuerySet[ChronicleEntry, object]:
    earlier = _messages(Sender.VISITOR).filter(session_id=OuterRef("session_id"), seq__lt=OuterRef("seq"))
    return earlier.order_by("-seq").values("text")[:CLAIM_MESSAGES]


def _message(trigger: GateTrigger, row: Any) -> Recorded:
    about = "message" if trigger == GateTrigger.EVERY_USER_MESSAGE else "response"
    context = {about: row.text, "sender": row.sender, "recent": row.before[::-1]}
    return Recorded(trigger, row.session_id, row.seq, row.created_at, row.text[:_EXCERPT], context)


def _asked_for(deployment: Deployment, many: int) -> list[Recorded]:
    """Calls of the newest work, as they were planned."""
    items = WorkItem.objects.filter(deployment=deployment, type="task").order_by("-created_at")[:many]
    return [_call(item, call.tool, dict(call.args)) for item in items for call in item.spec.calls]


def _call(item: WorkItem, tool: str, args: dict[str, object]) -> Recorded:
    excerpt = f"{tool} {canonical_json(args)}"[:_EXCERPT]
    context = {"tool_name": tool, "tool_args": args}
    return Recorded(GateTrigger.ON_TOOL_CALL, item.pk, 0, item.created_at, excerpt, context)


def turn_gates(
    deployment: Deployment, active: tuple[GateSpec, ...], tried: tuple[GateSpec, ...]
) -> tuple[TurnGates, TurnGates]:
    """What a turn would run with each of these sets. A script sees today's records, not those of the message's day."""
    before, after = (
        TurnGates(one.gates, policy.level_gates(one), partial(policy.gate_files, one))
        for one in policy.load_with(deployment, active, tried)
    )
    return before, after


@asynccontextmanager
async def judge(gate: Gate, deployment: Deployment, most_usd: Decimal) -> AsyncIterator[AskModel]:
    """Asks models in a guarded run of its own, which ends with it."""
    run = await in_scope(gate.tenant_id, _open_run, gate, deployment, most_usd)
    serving, here = await in_scope(gate.tenant_id, live_settings, deployment), asyncio.get_running_loop()
    try:
        yield guard.GateJudge(run, serving.model_for(Role.PLANNER), here, keys=deployment.keys)
    finally:
        status, reason = RunStatus.COMPLETED, TerminalReason.COMPLETED
        await in_scope(gate.tenant_id, guard.close_run, run.run_id, status=status, reason=reason)


def _open_run(gate: Gate, deployment: Deployment, most_usd: Decimal) -> RunRef:
    limits = Limits(cost_usd=most_usd)
    run = guard.open_run(
        Origin.WORK, gate.pk, deployment_id=deployment.pk, phase=Phase.EXECUTION, allow=(), limits=limits
    )
    return run.ref


register_source(BacktestSource(recorded=recorded, turn_gates=turn_gates, judge=judge))
