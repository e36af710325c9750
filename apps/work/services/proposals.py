"""Take a proposed plan in: refuse it, put it before a person, or run it under a standing approval.

`screening` validates it, `plan_binding` binds it, `approval_requests` opens the card. Everything here runs inside the
caller's transaction (spec 5.1.2, 5.2.3).
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
from apps.work.visitor_messages import Change
from kernel.clock import now
from kernel.error_codes import ErrorCode
from kernel.errors import SilasError
from kernel.language import gettext_lazy
from llm.calls import PlannedCall

_NOT_FOLLOWABLE = gettext_lazy("what this builds on isn't finished or isn't yours")


@dataclass(frozen=True)
class _Source:
    """Where a plan came from; stored on every item made of it."""

    deployment: Deployment
    session_id: UUID | None
    trace_id: str
    requested_by: str
    access: frozenset[str]
    replaces: WorkItem | None


@dataclass(frozen=True)
class ScreenedPlan:
    """A plan that passed screening: its calls by task, the gate that needs a person, its source, warnings about what
    its author had read (`marks`), and its values as the visitor reads them (`changes`)."""

    plan: WorkItemSpec | ProjectPlan
    calls_by_task: Sequence[Sequence[RequestedCall]]
    review_gate: GateResult | None
    goal: WorkItem | None
    source: _Source
    terms: Terms
    marks: Sequence[str] = ()
    changes: tuple[Change, ...] = ()


class ProposalFields(TypedDict):
    """Arguments of `screen`."""

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
    hints: NotRequired[InteractionHints]
    by_staff: NotRequired[bool]
    marks: NotRequired[Sequence[str]]
    tracing: NotRequired[Tracer]


def propose(*, always_asks: bool = False, **fields: Unpack[ProposalFields]) -> Proposal:
    """Screen a plan and accept it if it passes. `always_asks`: no standing approval covers it."""
    screened = screen(**fields)
    return screened if isinstance(screened, Proposal) else accept_plan(screened, always_asks=always_asks)


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
    hints: InteractionHints = DEFAULT_HINTS,
    by_staff: bool = False,
    marks: Sequence[str] = (),
    tracing: Tracer = UNTRACED,
) -> ScreenedPlan | Proposal:
    """Return the plan as it may be accepted in this transaction, or the refusal, which is audited.

    `access`: the tools of the visitor's level; `subject`: the verified customer's id, or ""; `replaces`: the work that
    this is another plan for, which always needs an approval of its own; `continuation_of`: the finished work that this
    follows; `hints`: how proactive the turn wants it to be; `by_staff`: a member wrote it, so its own checks, gates and
    budget are kept; `marks`: warning lines for its card, with which no standing approval counts; `tracing`: traces its
    values.

    Only gates that decide from values run here; all of them, scripts included, run again when the call is made.
    """
    goal = active_goal(deployment)
    source = _Source(deployment, session_id, trace_id, requested_by, access, replaces)
    terms = Terms(
        subject, continuation_of, hints, by_staff, inherited_skills(goal.spec.skills if goal else ()), tracing
    )
    try:
        plan, tools = screening.read_plan(plan_markdown), screening.tools_of(goal)
        calls_by_task = screening.resolve_plan_calls(plan, tools, access)
        asked_for = [requested for calls in calls_by_task for requested in calls]
        asks = screening.check_call_gates(asked_for, gates, goal)
        granted = [tool for name, tool in tools.items() if name in access]
        changes = screening.visible_changes(asked_for, gates, granted=granted, subject=subject) if session_id else ()
        screening.require_room(asked_for, subject=subject, session_id=session_id, replaces=replaces)
        if continuation_of and not finished_item_of(continuation_of, subject=subject, session_id=session_id):
            raise SilasError(ErrorCode.LINKAGE_MISSING, _NOT_FOLLOWABLE, status=400)
    except SilasError as refusal:
        # The code alone: the words of the refusal may repeat what the model or the visitor wrote.
        record(AuditEvent.WORK_REFUSED, subject=f"session:{session_id}", data={"code": refusal.code})
        gate = str(refusal.extra.get("gate", ""))
        return Proposal("refused", reason=refusal.message, code=refusal.code, gate=gate)
    return ScreenedPlan(plan, calls_by_task, asks, goal, source, terms, marks, changes)


def accept_plan(screened: ScreenedPlan, *, always_asks: bool = False) -> Proposal:
    """Dispatch the plan under a standing approval, or put it before a person; in the transaction that screened it."""
    plan, calls_by_task, goal = screened.plan, screened.calls_by_task, screened.goal
    source, terms = screened.source, screened.terms
    # Only a plain single task may use the goal's standing approval; everything else needs a person.
    person_needed = any(
        (screened.review_gate, source.replaces, always_asks, screened.marks, isinstance(plan, ProjectPlan))
    )
    standing = None if person_needed else _standing_spec(calls_by_task[0], goal, terms)
    if standing is not None and goal is not None:
        item = _create(standing, source, terms.subject)
        verdict = authorize_standing(item, goal)
        if verdict is not None and verdict.ok:
            return Proposal("dispatched", item.pk)
        record_origins(item, calls_by_task[0], terms.tracing)
    elif isinstance(plan, ProjectPlan):
        item = _create_project(plan, calls_by_task, source, terms)
    else:
        item = _create(plan_binding.bind_task(plan, calls_by_task[0], terms), source, terms.subject)
    calls = [requested for calls in calls_by_task for requested in calls]
    request_approval(item, calls, screened.review_gate, marks=screened.marks, changes=screened.changes)
    return Proposal("card", item.pk)


def _create(spec: WorkItemSpec, source: _Source, subject: str) -> WorkItem:
    item = create_item(
        spec,
        deployment_id=source.deployment.pk,
        session_id=source.session_id,
        trace_id=source.trace_id,
        subject=subject,
        requested_by=source.requested_by,
    )
    # What another plan may call later is what this level allows now.
    depth = lock_course(source.replaces).depth + 1 if source.replaces else 0
    Course.objects.create(work_item=item, granted=sorted(source.access), replaces=source.replaces, depth=depth)
    return item


def _create_project(
    plan: ProjectPlan, calls_by_task: Sequence[Sequence[RequestedCall]], source: _Source, terms: Terms
) -> WorkItem:
    """Create the project and its tasks. A task has no card and no messages of its own."""
    spec, tasks = plan_binding.bind_project(plan, calls_by_task, terms)
    project = _create(spec, source, terms.subject)
    for task in tasks:
        _create(task, replace(source, session_id=None), terms.subject)
    return project


def _standing_spec(calls: Sequence[RequestedCall], goal: WorkItem | None, terms: Terms) -> WorkItemSpec | None:
    """Return the task that the goal's own template would start; None if the standing approval does not cover it, or if
    anything outside, or the model itself, influenced the values."""
    if goal is None or goal.approval_token is None or len(calls) != 1 or terms.follow_up_of is not None:
        return None
    account = terms.tracing.origins_of([(calls[0].call, calls[0].tool)])
    # A value from outside or of the model's own is read by a person, even where the template leaves it open.
    if not account.is_vouched(plan_binding.open_arguments(goal.spec)):
        return None
    if _used_today(calls[0], goal, terms.subject):
        return None
    return plan_binding.bind_standing_task(goal.spec, calls[0], terms)


def record_origins(item: WorkItem, calls: Sequence[RequestedCall], tracing: Tracer) -> None:
    """Write the origins of its values into a task that the standing approval did not cover after all, so that its card
    shows them."""
    account = tracing.origins_of([(requested.call, requested.tool) for requested in calls])
    edits.apply_edit(item, {**item.spec.as_plan(), "body": with_origins(item.spec.body, account)})
    item.refresh_from_db()


def _used_today(requested: RequestedCall, goal: WorkItem, subject: str) -> bool:
    """Whether the standing approval was used today for this customer on a record that the call names too. A limit on
    one call does not limit many: repeated small actions need a person from the second one on."""
    record_keys = skills.record_keys(subject, requested.tool.records) & _string_args(requested.call)
    served = standing_items_of(goal, subject=subject, since=now() - timedelta(days=1)) if record_keys else []
    return any(record_keys & _string_args(call) for item in served for call in item.spec.calls)


def _string_args(call: PlannedCall) -> set[str]:
    return {value for value in call.args.values() if isinstance(value, str)}
