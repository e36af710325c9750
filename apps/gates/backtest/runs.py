"""Run a version of a gate over recorded messages, answers and calls of a deployment, and report what would change.

Reads in short scopes, decides outside of every scope, and leaves one audit entry with counts. Bounded in messages and
time, and in money where models are asked. Called by the console, the administration and the API, for owners.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from decimal import Decimal
from functools import partial
from uuid import UUID

from asgiref.sync import async_to_sync

from apps.audit.enums import AuditEvent
from apps.audit.services import record
from apps.gates import queries
from apps.gates.allowance import AskModel
from apps.gates.backtest.evaluation import Outcome, evaluate, reads_recorded_input
from apps.gates.backtest.source import Recorded, TurnGates, source
from apps.gates.enums import GateTrigger
from apps.gates.models import Gate, GateVersion
from apps.gates.providers import PROVIDERS
from apps.gates.schemas import GateSpec
from apps.gates.services.runner import scripts_due
from apps.gates.validation import require_valid
from apps.tenants.models import Deployment
from apps.tenants.queries import deployment_by_id
from kernel.error_codes import ErrorCode
from kernel.errors import NotFound, SilasError
from kernel.language import gettext
from kernel.tenancy import in_scope, tenant_scope

MOST_MESSAGES, MOST_SECONDS = 500, 20.0
# Where models are asked: of so many messages, for so much.
MOST_ASKED, MOST_USD = 20, Decimal("1.00")


@dataclass(frozen=True)
class Change:
    """Something whose outcome is another one with the version in force."""

    recorded: Recorded
    before: Outcome
    after: Outcome


@dataclass(frozen=True)
class BacktestReport:
    """The result of a dry run. `untried`: why nothing was decided, "" when something was; `complete` is False when time
    ran out before `found` were read."""

    gate: Gate
    version: GateVersion
    deployment: Deployment
    found: int = 0
    read: int = 0
    before: Mapping[str, int] | None = None
    after: Mapping[str, int] | None = None
    changes: tuple[Change, ...] = ()
    untried: str = ""
    skipped: tuple[str, ...] = ()

    @property
    def complete(self) -> bool:
        return self.read == self.found


@dataclass(frozen=True)
class _Case:
    gate: Gate
    version: GateVersion
    deployment: Deployment
    active: TurnGates
    tried: TurnGates
    records: tuple[Recorded, ...]
    untried: str
    ask_models: bool


def backtest_version(
    tenant_id: UUID,
    gate_id: UUID,
    number: int,
    *,
    actor: str,
    deployment_id: UUID | None = None,
    messages: int = MOST_MESSAGES,
    ask_models: bool = False,
    clock: Callable[[], float] = time.monotonic,
) -> BacktestReport:
    """Try version `number` on the newest `messages` of a deployment: the gate's own, or the one named. `ask_models`:
    gates that ask a model do so, about the newest `MOST_ASKED`, within the budgets of the company and the deployment.

    Opens its own scopes; call it in none, and not on an event loop. Raises `NotFound`, 422 `gate_invalid`, and 400
    `deployment_missing`.
    """
    many = max(1, min(messages, MOST_ASKED if ask_models else MOST_MESSAGES))
    with tenant_scope(tenant_id):
        case = _prepare(gate_id, number, deployment_id, many, ask_models=ask_models)
    done = async_to_sync(_decide)(case, clock)
    with tenant_scope(tenant_id):
        _record(done, actor)
    return done


def _prepare(gate_id: UUID, number: int, deployment_id: UUID | None, many: int, *, ask_models: bool) -> _Case:
    gate = queries.gate_by_id(gate_id)
    version = queries.version_of(gate, number)
    deployment = _deployment(gate, deployment_id)
    try:
        wanted = version.to_spec()
    except ValueError as error:
        raise SilasError(ErrorCode.GATE_INVALID, gettext("This version isn't a valid gate.")) from error
    require_valid(wanted)
    active, tried = queries.gate_sets_with(version, deployment.pk)
    looked_at = {GateTrigger(spec.on) for spec in (wanted, *(s for s in active if s.name == gate.name))}
    untried = _why_not(wanted, ask_models=ask_models)
    records = () if untried else source().recorded(deployment, looked_at, many)
    before, after = source().turn_gates(deployment, active, tried)
    return _Case(gate, version, deployment, before, after, records, untried, ask_models)


def _deployment(gate: Gate, deployment_id: UUID | None) -> Deployment:
    wanted = gate.deployment_id or deployment_id
    # A gate of one chatbot says nothing about another's conversations.
    if gate.deployment_id and deployment_id and gate.deployment_id != deployment_id:
        raise NotFound()
    if wanted is None:
        raise SilasError(ErrorCode.DEPLOYMENT_MISSING)
    return deployment_by_id(wanted)


def _why_not(wanted: GateSpec, *, ask_models: bool) -> str:
    if not reads_recorded_input(wanted):
        return GateTrigger.AFTER_STEP.value
    return "" if ask_models or not PROVIDERS[wanted.provider].asks_model else str(wanted.provider)


async def _decide(case: _Case, clock: Callable[[], float]) -> BacktestReport:
    until = clock() + MOST_SECONDS
    before: Counter[str] = Counter()
    after: Counter[str] = Counter()
    changes: list[Change] = []
    async with _judge(case) as ask:
        for each in case.records:
            # A dry run shares the machine with visitors: what it has not read by then is reported as such.
            if clock() > until:
                break
            was, now = await _outcome(case, case.active, each, ask), await _outcome(case, case.tried, each, ask)
            before[was.action] += 1
            after[now.action] += 1
            if was != now:
                changes.append(Change(each, was, now))
    return BacktestReport(
        gate=case.gate,
        version=case.version,
        deployment=case.deployment,
        found=len(case.records),
        read=before.total(),
        before=dict(before),
        after=dict(after),
        changes=tuple(changes),
        untried=case.untried or ("" if case.records else "nothing_recorded"),
        skipped=tuple(spec.name for spec in case.tried.gates if _is_left_out(spec, ask_models=case.ask_models)),
    )


def _is_left_out(spec: GateSpec, *, ask_models: bool) -> bool:
    return not reads_recorded_input(spec) or (PROVIDERS[spec.provider].asks_model and not ask_models)


async def _outcome(case: _Case, gates: TurnGates, each: Recorded, ask: AskModel | None) -> Outcome:
    """In a thread, because scripts and models are waited for; a script's files are read in a scope before."""
    scripts = scripts_due(gates.gates, each.trigger, each.context)
    files = await in_scope(case.gate.tenant_id, gates.files_of, scripts, each.context) if scripts else None
    decide = partial(
        evaluate, gates.gates, each.trigger, each.context, level_gates=gates.level_gates, files=files, ask=ask
    )
    return await asyncio.to_thread(decide)


@asynccontextmanager
async def _judge(case: _Case) -> AsyncIterator[AskModel | None]:
    if not (case.ask_models and case.records):
        yield None
        return
    async with source().judge(case.gate, case.deployment, MOST_USD) as ask:
        yield ask


def _record(done: BacktestReport, actor: str) -> None:
    data = {
        "version": done.version.number,
        "deployment": str(done.deployment.pk),
        "read": done.read,
        "changed": len(done.changes),
        "found": done.found,
    }
    record(AuditEvent.GATE_TRIED, actor=actor, subject=f"gate:{done.gate.pk}", data=data)
