"""Prepare planner runs and store their answers: the scopes around a run.

A question is answered once: a late or repeated answer is audited and changes nothing. Advice returns over the runtime
queue; another plan goes to a process that may open cards.
"""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from apps.audit.enums import AuditEvent
from apps.audit.services import record
from apps.bus import services as bus
from apps.bus.deliveries import Delivery
from apps.bus.enums import Kind, Queue, Sender
from apps.bus.models import QueueMessage
from apps.bus.schemas import RESEARCH_TOOLS, Guidance, PlanResult
from apps.gates.schemas import GateSpec
from apps.guard import services as guard
from apps.guard.enums import Origin, Phase
from apps.guard.schemas import Limits, RunRef
from apps.skills import queries as skills
from apps.skills import roles
from apps.work import research_rules
from apps.work.attempt_jobs import gates_of, keys_of, model_name
from apps.work.budgets import BudgetUsed
from apps.work.enums import PlanningState, ResearchState, Waiting
from apps.work.locks import lock_course, lock_item
from apps.work.models import Course, LedgerEntry, Planning, ResearchRequest, WorkItem
from apps.work.provenance import without_origins
from apps.work.queries import active_goal_spec
from apps.work.services import failure_handling, usage
from kernel.clock import now
from kernel.error_codes import ErrorCode
from kernel.errors import SilasError
from kernel.taint import Taint
from kernel.tenancy import current_tenant_id
from llm.briefing import Briefing, ToolBrief
from llm.enums import Role
from llm.keys import ProviderKeys

PURPOSES = {Kind.CONSULT_PLANNER: Waiting.GUIDANCE, Kind.REPLAN_REQUEST: Waiting.REPLAN}
PLANNER_TOOLS = (
    ToolBrief("request_research", "Ask for facts; the answers come with your next turn. Nothing is changed.", {}),
    ToolBrief("validate_plan", "Say what is wrong with a plan, if anything is.", {}),
    ToolBrief("memory_search", "Search the company's knowledge.", {}),
)
_ADVISE = (
    "The work item above was approved and has failed; what went wrong stands in the message. Write in `message` what"
    " its executor should do differently within the calls that were approved. Leave `plan_action` null: no other call"
    " may be made."
)
_REPLAN = (
    "The work item above has failed for good; what went wrong stands in the message. Write another plan for the same"
    " purpose with other calls, as `plan_action`. A plan with the same calls in the same order is refused. If there is"
    " no other way, say so in `message` and leave `plan_action` null."
)


@dataclass(frozen=True)
class PlanningJob:
    """One run of the planner, ready to happen outside of any scope."""

    planning: Planning
    run: RunRef
    briefing: Briefing
    model_name: str
    keys: ProviderKeys
    item: WorkItem
    gates: tuple[GateSpec, ...]
    room: int
    known: frozenset[str]


def open_job(message: QueueMessage) -> PlanningJob | None:
    """Return what the planner needs for this question; None when the item no longer waits for it. Inside a scope."""
    assert message.task_id is not None
    item = lock_item(message.task_id)
    course = lock_course(item)
    purpose = PURPOSES[Kind(message.kind)]
    # By the attempt: the same question may have been asked about an earlier one.
    if course.waiting_for != purpose or message.attempt_number != item.attempts_made:
        _too_late(item, purpose)
        return None
    planning = Planning.objects.get_or_create(
        work_item=item, attempt=item.attempts_made, purpose=purpose, defaults={"created_at": now()}
    )[0]
    if planning.state in (PlanningState.READY_TO_FINALIZE, PlanningState.EXPIRED):
        move_planning(planning, PlanningState.PLANNING)
    return job_of(planning, item, course) if planning.state == PlanningState.PLANNING else None


def job_of(planning: Planning, item: WorkItem, course: Course) -> PlanningJob:
    requests = list(planning.requests.all())
    open_ = [request for request in requests if request.state == ResearchState.ASKED]
    return PlanningJob(
        planning=planning,
        run=RunRef(current_tenant_id(), run_of(item, course)),
        briefing=_briefing(planning, item, course, requests),
        model_name=model_name(item, Role.PLANNER),
        keys=keys_of(item),
        item=item,
        gates=gates_of(item),
        room=research_rules.questions_left(rounds=planning.rounds, in_flight=len(open_)),
        known=frozenset(request.dedupe_key for request in requests),
    )


def run_of(item: WorkItem, course: Course) -> UUID:
    """Return the guarded run that pays for the planner's help: the plan's, not the task's (contract silas 5.1)."""
    plan, account = failure_handling.budget_account_of(item, course)
    if account.plan_run_id is None:
        budget = plan.spec.budget
        limits = Limits(cost_usd=str(budget.max_cost_usd), tokens=budget.max_tokens)
        run = guard.open_run(
            Origin.WORK,
            plan.pk,
            deployment_id=plan.deployment_id,
            phase=Phase.EXECUTION,
            allow=RESEARCH_TOOLS,
            limits=limits,
        )
        account.plan_run_id = run.pk
        account.save(update_fields=["plan_run_id"])
    # What the attempt has read reaches the planner in its error, so the mark goes with it.
    if item.run_id is not None:
        guard.copy_mark(item.run_id, to=account.plan_run_id)
    return account.plan_run_id


def _briefing(planning: Planning, item: WorkItem, course: Course, requests: list[ResearchRequest]) -> Briefing:
    replan = planning.purpose == Waiting.REPLAN
    return Briefing(
        role=Role.PLANNER,
        text=_failure(item),
        title=item.deployment.title if item.deployment else "",
        skills=roles.instructions(item.spec.skills),
        tools=(*PLANNER_TOOLS, *(granted_tools(item, course) if replan else ())),
        work_body=without_origins(item.spec.body) + "".join(_finding(request) for request in requests),
        instruction=_REPLAN if replan else _ADVISE,
        reference=str(item.pk),
    )


def _failure(item: WorkItem) -> str:
    """Describe what went wrong, and which calls took effect: by name, without what they returned."""
    tools = LedgerEntry.objects.filter(attempt__work_item=item, success=True).values_list("tool", flat=True)
    done = f"Calls that took effect: {', '.join(tools)}." if tools else "No call took effect."
    return f"After {item.attempts_made} attempts:\n{item.last_error}\n{done}"


def granted_tools(item: WorkItem, course: Course) -> list[ToolBrief]:
    """Return the tools that another plan may call: those of the goal that the customer's level allowed at the time of
    the request."""
    goal = active_goal_spec(item.deployment).value if item.deployment else None
    granted = set(course.granted)
    tools = [tool for tool in skills.tools_for(goal.skills if goal else item.spec.skills) if tool.name in granted]
    return [
        ToolBrief(tool.name, tool.description, tool.args, acting=tool.acting, skill=tool.skill, intent=tool.intent)
        for tool in tools
    ]


def _finding(request: ResearchRequest) -> str:
    """Quote a research answer, so that it can name no call."""
    answer = request.result or f"no answer: {request.error or 'it did not come in time'}"
    # A call is a fenced block at the start of a line, which a quoted line cannot begin.
    quoted = "\n".join(f"> {line}" for line in answer.splitlines())
    return f"\n\n# Research: {' '.join(request.task.split())[:200]}\n\n{quoted}"


def _too_late(item: WorkItem, purpose: Waiting) -> None:
    event = AuditEvent.GUIDANCE_GIVEN if purpose == Waiting.GUIDANCE else AuditEvent.REPLAN_ENDED
    record(event, subject=f"work:{item.pk}", data={"outcome": "late"})


def send_advice(delivery: Delivery, job: PlanningJob, text: str, *, seconds: float) -> None:
    """Send the planner's advice, which counts only if the item still waits. No advice is handled at once."""
    charge_plan(job.item.pk, seconds=seconds)
    move_planning(job.planning, PlanningState.FINISHED)
    item = job.item
    if not text:
        failure_handling.take_guidance(item.pk, answers=failure_handling.question_id(item), text="")
        delivery.finish()
        return
    bus.send_message(
        Queue.RUNTIME,
        kind=Kind.PLANNER_GUIDANCE,
        scope_id=item.pk,
        sender=Sender.PLANNER,
        payload=Guidance(answers=failure_handling.question_id(item)),
        content=text,
        trace_id=item.trace_id,
        message_id=f"guidance:{item.pk}:{item.attempts_made}",
        task_id=item.pk,
        attempt_number=item.attempts_made,
        taint=Taint.EXTERNAL,
    )
    delivery.finish()


def submit_plan(delivery: Delivery, job: PlanningJob, plan_markdown: str, *, seconds: float) -> None:
    """Send another plan to a process that may open cards; "" if there is none, which escalates to a person."""
    charge_plan(job.item.pk, seconds=seconds)
    move_planning(job.planning, PlanningState.FINISHED)
    item = lock_item(job.item.pk)
    course = lock_course(item)
    if course.waiting_for != Waiting.REPLAN:
        _too_late(item, Waiting.REPLAN)
    elif not plan_markdown:
        record(AuditEvent.REPLAN_ENDED, subject=f"work:{item.pk}", data={"outcome": "no_other_plan"})
        failure_handling.give_up(item)
    else:
        _send_plan(item, course, plan_markdown)
    delivery.finish()


def _send_plan(item: WorkItem, course: Course, plan_markdown: str) -> None:
    bus.send_message(
        Queue.TRUSTED,
        kind=Kind.PLAN_RESULT,
        scope_id=plan_scope(item.pk),
        sender=Sender.PLANNER,
        payload=PlanResult(depth=course.depth + 1),
        trace_id=item.trace_id,
        message_id=f"plan:{item.pk}",
        task_id=item.pk,
        plan_markdown=plan_markdown,
        taint=Taint.EXTERNAL,
    )


def plan_scope(item_id: UUID) -> str:
    """Return a bus scope of its own, so that nothing else waits behind a plan."""
    return f"plan:{item_id}"


def charge_plan(item_id: UUID, *, seconds: float) -> None:
    """Add the guarded run's use, and the time, to the plan's account (contract silas 5.1)."""
    item = lock_item(item_id)
    _, account = failure_handling.budget_account_of(item, lock_course(item))
    used = usage.with_run_usage(account.used, account.plan_run_id).merge(BudgetUsed(wall_time_seconds=seconds))
    account.plan_used = used.model_dump(mode="json")
    account.save(update_fields=["plan_used"])


def move_planning(planning: Planning, state: PlanningState) -> None:
    """Move the planning to `state`. Raises `SilasError("planning_moved")` when that is not allowed, or it has moved."""
    old = PlanningState(planning.state)
    here = Planning.objects.filter(pk=planning.pk, state=old)
    if not research_rules.may_move(old, state) or not here.update(state=state, rounds=planning.rounds):
        raise SilasError(ErrorCode.PLANNING_MOVED)
    planning.state = state
