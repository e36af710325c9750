"""What would change if this version of a gate were in force? A dry run over what is recorded of a deployment.

Reads in a short scope, decides outside of every scope, and leaves one audit entry with counts: nobody is answered, and
nothing is written about anybody. Bounded in messages and in time. Called by the console and the API, for owners.

What there is to read: visitors' messages as they were written; answers as they went out, so that what a gate kept back
is not among them; calls of planned work with their arguments. Look-ups and steps of work are not kept.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from apps.audit.enums import AuditEvent
from apps.audit.services import record
from apps.gates import queries as gates
from apps.gates.enums import GateTrigger
from apps.gates.models import Gate, GateVersion
from apps.gates.schemas import GateSpec
from apps.gates.services.trials import Outcome, can_be_tried, outcome_of
from apps.gates.soundness import require_sound
from apps.sessions import policy
from apps.sessions.enums import EntryKind, Sender
from apps.sessions.models import ChatSession, ChronicleEntry
from apps.tenants.models import Deployment
from apps.work.models import WorkItem
from kernel.canonical import canonical_json
from kernel.errors import NotFound, SilasError
from kernel.tenancy import tenant_scope

MOST_MESSAGES, MOST_SECONDS = 500, 20.0
_MOST_CONVERSATIONS = 300
_EXCERPT = 200
_SENDERS = {GateTrigger.EVERY_USER_MESSAGE: Sender.VISITOR, GateTrigger.EVERY_AGENT_RESPONSE: Sender.BOT}


@dataclass(frozen=True)
class Recorded:
    """One thing that was said or asked for: where it stands (`seq` 0 for a call of a work item), and what a gate is
    asked about it. `excerpt` is for people who may read it."""

    trigger: GateTrigger
    place: UUID
    seq: int
    at: datetime
    excerpt: str
    context: Mapping[str, Any]


@dataclass(frozen=True)
class Change:
    """Something whose outcome is another one with the version in force."""

    recorded: Recorded
    before: Outcome
    after: Outcome


@dataclass(frozen=True)
class Rehearsal:
    """What came of a dry run. `untried`: why nothing was decided, "" when something was; `complete` is False when time
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
    active: tuple[GateSpec, ...]
    tried: tuple[GateSpec, ...]
    records: tuple[Recorded, ...]
    untried: str


def rehearse(
    tenant_id: UUID,
    gate_id: UUID,
    number: int,
    *,
    actor: str,
    deployment_id: UUID | None = None,
    messages: int = MOST_MESSAGES,
    clock: Callable[[], float] = time.monotonic,
) -> Rehearsal:
    """Try version `number` on the newest `messages` of a deployment: the gate's own, or the one named.

    Opens its own scopes; call it in none. Raises `NotFound`, 422 `gate_invalid`, and 400 `deployment_missing`.
    """
    many = max(1, min(messages, MOST_MESSAGES))
    with tenant_scope(tenant_id):
        case = _prepared(gate_id, number, deployment_id, many)
    done = _decided(case, clock)
    with tenant_scope(tenant_id):
        _written_down(done, actor)
    return done


def _prepared(gate_id: UUID, number: int, deployment_id: UUID | None, many: int) -> _Case:
    gate = gates.gate_by_id(gate_id)
    version = gates.version_of(gate, number)
    deployment = _deployment(gate, deployment_id)
    try:
        wanted = version.to_spec()
    except ValueError as error:
        raise SilasError("gate_invalid", "This version is no gate that could be run.", status=422) from error
    require_sound(wanted)
    active, tried = gates.sets_with(version, deployment.pk)
    of_goal = policy.goal_gates(deployment)
    looked_at = {GateTrigger(spec.on) for spec in (wanted, *(s for s in active if s.name == gate.name))}
    untried = "" if can_be_tried(wanted) else _why_not(wanted)
    records = () if untried else _recorded(deployment, looked_at, many)
    return _Case(gate, version, deployment, (*active, *of_goal), (*tried, *of_goal), records, untried)


def _deployment(gate: Gate, deployment_id: UUID | None) -> Deployment:
    wanted = gate.deployment_id or deployment_id
    if gate.deployment_id and deployment_id and gate.deployment_id != deployment_id:
        raise NotFound("deployment of this gate")
    if wanted is None:
        raise SilasError("deployment_missing", "Say on which deployment's messages this is tried.", status=400)
    found: Deployment | None = Deployment.objects.filter(pk=wanted).first()
    if found is None:
        raise NotFound("deployment")
    return found


def _why_not(wanted: GateSpec) -> str:
    return "after_step" if wanted.on == GateTrigger.AFTER_STEP else str(wanted.provider)


def _recorded(deployment: Deployment, triggers: set[GateTrigger], many: int) -> tuple[Recorded, ...]:
    found: list[Recorded] = []
    for trigger in sorted(triggers - {GateTrigger.AFTER_STEP}):
        said = trigger in _SENDERS
        found += _said(deployment, trigger, many) if said else _asked_for(deployment, many)
    return tuple(sorted(found, key=lambda each: each.at, reverse=True)[:many])


def _said(deployment: Deployment, trigger: GateTrigger, many: int) -> list[Recorded]:
    """The newest messages of the conversations that were last active."""
    held = ChatSession.objects.filter(deployment=deployment).order_by("-last_active_at")
    sessions = list(held.values_list("pk", flat=True)[:_MOST_CONVERSATIONS])
    rows = ChronicleEntry.objects.filter(session_id__in=sessions, kind=EntryKind.MESSAGE, sender=_SENDERS[trigger])
    return [_message(trigger, row) for row in rows.order_by("-created_at")[:many]]


def _message(trigger: GateTrigger, row: ChronicleEntry) -> Recorded:
    about = "message" if trigger == GateTrigger.EVERY_USER_MESSAGE else "response"
    context = {about: row.text, "sender": row.sender}
    return Recorded(trigger, row.session_id, row.seq, row.created_at, row.text[:_EXCERPT], context)


def _asked_for(deployment: Deployment, many: int) -> list[Recorded]:
    """Calls of the newest work, as they were planned."""
    items = WorkItem.objects.filter(deployment=deployment, type="task").order_by("-created_at")[:many]
    return [_call(item, call.tool, dict(call.args)) for item in items for call in item.spec.calls]


def _call(item: WorkItem, tool: str, args: dict[str, Any]) -> Recorded:
    excerpt = f"{tool} {canonical_json(args)}"[:_EXCERPT]
    context = {"tool_name": tool, "tool_args": args}
    return Recorded(GateTrigger.ON_TOOL_CALL, item.pk, 0, item.created_at, excerpt, context)


def _decided(case: _Case, clock: Callable[[], float]) -> Rehearsal:
    until = clock() + MOST_SECONDS
    before: Counter[str] = Counter()
    after: Counter[str] = Counter()
    changes: list[Change] = []
    for each in case.records:
        if clock() > until:
            break
        was, now = (outcome_of(specs, each.trigger, each.context) for specs in (case.active, case.tried))
        before[was.action] += 1
        after[now.action] += 1
        if was != now:
            changes.append(Change(each, was, now))
    return Rehearsal(
        gate=case.gate,
        version=case.version,
        deployment=case.deployment,
        found=len(case.records),
        read=before.total(),
        before=dict(before),
        after=dict(after),
        changes=tuple(changes),
        untried=case.untried or ("" if case.records else "nothing_recorded"),
        skipped=tuple(spec.name for spec in case.tried if not can_be_tried(spec)),
    )


def _written_down(done: Rehearsal, actor: str) -> None:
    data = {
        "version": done.version.number,
        "deployment": str(done.deployment.pk),
        "read": done.read,
        "changed": len(done.changes),
        "found": done.found,
    }
    record(AuditEvent.GATE_TRIED, actor=actor, subject=f"gate:{done.gate.pk}", data=data)
