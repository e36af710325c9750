"""What becomes of a plan that was proposed? Refused, put before a person, or run under a standing yes.

`screening` says whether it may be asked for, `binding` what of it is bound, `asking` what a person is shown. Everything
here runs inside the caller's transaction (spec 5.1.2, 5.2.3; ADR 0013).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import NotRequired, TypedDict, Unpack
from uuid import UUID

from apps.audit.enums import AuditEvent
from apps.audit.services import record
from apps.gates.schemas import GateResult, GateSpec
from apps.skills import queries as skills
from apps.skills.roles import inherited_skills
from apps.tenants.models import Deployment
from apps.work.interaction import DEFAULT_HINTS, InteractionHints
from apps.work.locks import lock_course
from apps.work.models import VISITOR, Course, WorkItem
from apps.work.plans import ProjectPlan
from apps.work.provenance import UNTRACED, Tracer, with_origins
from apps.work.queries import active_goal, finished_item_of, standing_items_of
from apps.work.schemas import Proposal, WorkItemSpec
from apps.work.services import edits, plan_binding, screening
from apps.work.services.approval_requests import RequestedCall, request_approval
from apps.work.services.authorization import authorize_standing
from apps.work.services.items import create_item
from apps.work.services.plan_binding import Terms
from kernel.clock import now
from kernel.errors import SilasError
from kernel.llm.calls import PlannedCall

_UNLINKED = "what this builds on is not finished, or is not yours"


@dataclass(frozen=True)
class _Source:
    """Where a plan came from: written to every item that comes of it."""

    deployment: Deployment
    session_id: UUID | None
    trace_id: str
    requested_by: str
    access: frozenset[str]
    replaces: WorkItem | None


@dataclass(frozen=True)
class ScreenedPlan:
    """A plan that may be taken in: what it says, its calls by task, the gate that wants a person, where it came from,
    what was wrong with what its author had read (`marks`), and the values that its visitor is `told`."""

    plan: WorkItemSpec | ProjectPlan
    wanted: Sequence[Sequence[RequestedCall]]
    asks: GateResult | None
    goal: WorkItem | None
    source: _Source
    terms: Terms
    marks: Sequence[str] = ()
    told: str = ""


class ProposalFields(TypedDict):
    """What a plan is taken in with, as `screen` says."""

    deployment: Deployment
    session_id: UUID | None
    plan_markdown: str
    access: frozenset[str]
    subject: str
    gates: Sequence[GateSpec]
    trace_id: str
    requested_by: NotRequired[str]
    replaces: NotRequired[WorkItem | None]
    continuation_of: NotRequired[UUID | None]
    wish: NotRequired[InteractionHints]
    by_staff: NotRequired[bool]
    marks: NotRequired[Sequence[str]]
    tracing: NotRequired[Tracer]


def propose(*, always_asks: bool = False, **asked: Unpack[ProposalFields]) -> Proposal:
    """Take a plan in: `screen`, and `take_in` what it let pass. `always_asks`: no standing yes covers it."""
    found = screen(**asked)
    return found if isinstance(found, Proposal) else accept_plan(found, always_asks=always_asks)


def screen(
    *,
    deployment: Deployment,
    session_id: UUID | None,
    plan_markdown: str,
    access: frozenset[str],
    subject: str,
    gates: Sequence[GateSpec],
    trace_id: str,
    requested_by: str = VISITOR,
    replaces: WorkItem | None = None,
    continuation_of: UUID | None = None,
    wish: InteractionHints = DEFAULT_HINTS,
    by_staff: bool = False,
    marks: Sequence[str] = (),
    tracing: Tracer = UNTRACED,
) -> ScreenedPlan | Proposal:
    """The plan as it may be taken in, in this transaction, or the refusal, which is written down; whoever speaks of the
    plan asks first. `access`: the tools of the visitor's level; `subject`: the verified customer's id, or "";
    `replaces`: the work that this is another plan for, which always needs a yes of its own; `continuation_of`: the
    finished work that this goes on with; `wish`: how forward the turn wants it to be; `by_staff`: a member wrote it, so
    its own checks, gates and budget are kept; `marks`: lines for its card, with which no standing approval counts;
    `tracing`: what its values are traced with.

    Only gates that decide from values are asked here; all of them, scripts included, are asked again when the call is
    made.
    """
    goal = active_goal(deployment)
    source = _Source(deployment, session_id, trace_id, requested_by, access, replaces)
    terms = Terms(subject, continuation_of, wish, by_staff, inherited_skills(goal.spec.skills if goal else ()), tracing)
    try:
        plan = screening.read_plan(plan_markdown)
        wanted = screening.resolve_plan_calls(plan, screening.tools_of(goal), access)
        asked_for = [each for calls in wanted for each in calls]
        asks = screening.check_call_gates(asked_for, gates, goal)
        told = screening.visible_values(asked_for, gates) if session_id else ""
        screening.require_room(asked_for, subject=subject, session_id=session_id, replaces=replaces)
        _require_link(terms, session_id)
    except SilasError as refusal:
        record(AuditEvent.WORK_REFUSED, subject=f"session:{session_id}", data={"code": refusal.code})
        gate = str(refusal.extra.get("gate", ""))
        return Proposal("refused", reason=refusal.message, code=refusal.code, gate=gate)
    return ScreenedPlan(plan, wanted, asks, goal, source, terms, marks, told)


def accept_plan(screened: ScreenedPlan, *, always_asks: bool = False) -> Proposal:
    """Dispatched under a standing yes, or put before a person; in the transaction that screened it."""
    plan, wanted, goal = screened.plan, screened.wanted, screened.goal
    source, terms = screened.source, screened.terms
    person_needed = any((screened.asks, source.replaces, always_asks, screened.marks, isinstance(plan, ProjectPlan)))
    standing = None if person_needed else _standing_spec(wanted[0], goal, terms)
    if standing is not None and goal is not None:
        item = _create(standing, source, terms.subject)
        if _runs_at_once(item, goal):
            return Proposal("dispatched", item.pk)
        record_origins(item, wanted[0], terms.tracing)
    elif isinstance(plan, ProjectPlan):
        item = _create_project(plan, wanted, source, terms)
    else:
        item = _create(plan_binding.bind_task(plan, wanted[0], terms), source, terms.subject)
    calls = [each for calls in wanted for each in calls]
    request_approval(item, calls, screened.asks, marks=screened.marks, told=screened.told)
    return Proposal("card", item.pk)


def _require_link(terms: Terms, session_id: UUID | None) -> None:
    if terms.follow_up_of is None:
        return
    if finished_item_of(terms.follow_up_of, subject=terms.subject, session_id=session_id) is None:
        raise SilasError("linkage_missing", _UNLINKED)


def _create(spec: WorkItemSpec, source: _Source, subject: str) -> WorkItem:
    item = create_item(
        spec,
        deployment_id=source.deployment.pk,
        session_id=source.session_id,
        trace_id=source.trace_id,
        subject=subject,
        requested_by=source.requested_by,
    )
    _begin_course(item, source)
    return item


def _begin_course(item: WorkItem, source: _Source) -> None:
    """Another plan may later call what this level allows now, and counts how many came before it."""
    depth = lock_course(source.replaces).depth + 1 if source.replaces else 0
    Course.objects.create(work_item=item, granted=sorted(source.access), replaces=source.replaces, depth=depth)


def _create_project(
    plan: ProjectPlan, wanted: Sequence[Sequence[RequestedCall]], source: _Source, terms: Terms
) -> WorkItem:
    """The project with its tasks: none of them is asked about, or told in the conversation, by itself."""
    spec, tasks = plan_binding.bind_project(plan, wanted, terms)
    project = _create(spec, source, terms.subject)
    for task in tasks:
        _create(task, replace(source, session_id=None), terms.subject)
    return project


def _standing_spec(wanted: Sequence[RequestedCall], goal: WorkItem | None, terms: Terms) -> WorkItemSpec | None:
    """The task that the goal's own template would start; None where its standing approval does not reach, or where
    something outside, or the model itself, had a say in the values."""
    if goal is None or goal.approval_token is None or len(wanted) != 1 or terms.follow_up_of is not None:
        return None
    account = terms.tracing.account([(wanted[0].call, wanted[0].tool)])
    if not account.is_vouched(plan_binding.open_arguments(goal.spec)):
        return None
    if _used_today(wanted[0], goal, terms.subject):
        return None
    return plan_binding.bind_standing_task(goal.spec, wanted[0], terms)


def record_origins(item: WorkItem, wanted: Sequence[RequestedCall], tracing: Tracer) -> None:
    """A task that its goal's approval does not cover after all waits for one of its own, which shows where its values
    come from like any other."""
    account = tracing.account([(each.call, each.tool) for each in wanted])
    edits.apply_edit(item, {**item.spec.as_plan(), "body": with_origins(item.spec.body, account)})
    item.refresh_from_db()


def _used_today(wanted: RequestedCall, goal: WorkItem, subject: str) -> bool:
    """Whether the standing yes served this customer within a day about a record that the call names too. A limit on one
    call is no limit on many: what is cut into small pieces comes before a person from the second piece on."""
    named = skills.record_keys(subject, wanted.tool.records) & _words(wanted.call)
    served = standing_items_of(goal, subject=subject, since=now() - timedelta(days=1)) if named else []
    return any(named & _words(call) for item in served for call in item.spec.calls)


def _words(call: PlannedCall) -> set[str]:
    return {value for value in call.args.values() if isinstance(value, str)}


def _runs_at_once(item: WorkItem, goal: WorkItem) -> bool:
    verdict = authorize_standing(item, goal)
    return verdict is not None and verdict.ok
