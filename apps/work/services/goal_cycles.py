"""Decide what follows a check of a goal: healthy, reported, repaired under the standing approval, or put before a
person.

Always holds: a cycle happens once (its due time is unique); a repair is the goal's own template filled with what
failed, and runs only on a use of the standing approval that was spent for exactly it; one repair at a time; a goal
without budget is parked until a person resumes it (spec 5.2.3).
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from apps.audit.enums import AuditEvent
from apps.audit.services import record
from apps.bus import services as bus
from apps.bus.enums import Kind
from apps.gates.enums import EscalationKind
from apps.skills.roles import inherited_skills
from apps.tenants.models import Tenant, User
from apps.work import goal_templates, rules
from apps.work.budgets import BudgetUsed
from apps.work.enums import CycleOutcome, WorkItemStatus, WorkItemType, WorkReason
from apps.work.goal_templates import TemplateValues
from apps.work.locks import lock_item
from apps.work.models import GoalCycle, WorkItem
from apps.work.schemas import ALWAYS_ON, VerificationReport, WorkItemSpec
from apps.work.services import screening, standing_tasks
from apps.work.services.authorization import authorize_standing
from apps.work.services.cancellation import require_operator
from apps.work.services.items import create_item, move
from apps.work.services.outbox import enqueue_card
from apps.work.services.standing_tasks import ChildValues
from apps.work.signals import goal_checked
from kernel import schedules
from kernel.clock import now
from kernel.error_codes import ErrorCode
from kernel.errors import SilasError
from kernel.language import gettext
from kernel.tenancy import current_tenant_id

_CHECKED = (WorkItemStatus.HEALTHY, WorkItemStatus.FAILED)


def is_scheduled(spec: WorkItemSpec) -> bool:
    return spec.type == WorkItemType.GOAL and spec.schedule not in (None, "", ALWAYS_ON)


def require_schedule(spec: WorkItemSpec) -> None:
    """Validate a goal's schedule, checks and repair template when it is adopted.

    Raises `SilasError`: bad_schedule, bad_template.
    """
    if not is_scheduled(spec):
        return
    _next(spec)
    if not spec.verify:
        raise SilasError(ErrorCode.BAD_SCHEDULE, gettext("A scheduled goal needs checks."))
    # They run at each check, without anybody's approval.
    if any(requested.tool.acting for requested in screening.resolve_calls(spec.calls, screening.tools_in(spec.skills))):
        raise SilasError(ErrorCode.BAD_TEMPLATE, gettext("A goal's own calls may only read."))
    if _spawns(spec):
        call = goal_templates.template_call(spec.failure_context or "")
        if any(str(value).startswith("$") for value in call.args.values()):
            raise SilasError(
                ErrorCode.BAD_TEMPLATE, gettext("A repair's arguments can't be placeholders. Write them out.")
            )


def start_schedule(goal: WorkItem) -> None:
    """Schedule the next check of a goal that has a schedule."""
    if is_scheduled(goal.spec):
        bus.schedule(Kind.GOAL_CYCLE, scope_id=goal.pk, due_at=reschedule(goal))


def is_due(goal: WorkItem) -> bool:
    """Whether the goal must be checked now. Missed times count as one."""
    return goal.status in _CHECKED and goal.due_at is not None and goal.due_at <= now()


def next_check(goal: WorkItem) -> datetime | None:
    """When the goal is checked next; None for one that is parked or over."""
    return goal.due_at if goal.status in _CHECKED else None


def reschedule(goal: WorkItem) -> datetime:
    """Store and return when the goal is checked next."""
    goal.due_at = due_at = _next(goal.spec)
    goal.save(update_fields=["due_at"])
    return due_at


def _next(spec: WorkItemSpec) -> datetime:
    zone = Tenant.objects.only("timezone").get(pk=current_tenant_id()).timezone
    return schedules.next_due(spec.schedule or "", after=now(), zone=zone)


def conclude(goal: WorkItem, report: VerificationReport, *, due_at: datetime, trace_id: str) -> GoalCycle | None:
    """Store the locked goal's cycle and do what follows; None for a goal that is parked or over, or a cycle that was
    concluded before."""
    # Redelivered after its commit: the same due time is one cycle.
    if goal.status not in _CHECKED or GoalCycle.objects.filter(goal=goal, due_at=due_at).exists():
        return None
    outcome, spawned = (_healthy(goal), None) if report.all_passed else _failed(goal, report, trace_id)
    results = [vars(result) for result in report.results]
    cycle: GoalCycle = GoalCycle.objects.create(
        goal=goal, due_at=due_at, outcome=outcome, results=results, spawned=spawned, ran_at=now()
    )
    data = {"outcome": outcome.value, "checks": len(report.results), "failed": len(report.failed)}
    record(AuditEvent.GOAL_CHECKED, subject=f"work:{goal.pk}", data=data)
    goal_checked(cycle)
    return cycle


def _healthy(goal: WorkItem) -> CycleOutcome:
    """The goal recovered: reset what its repairs have used."""
    if goal.status != WorkItemStatus.HEALTHY:
        move(goal, WorkItemStatus.HEALTHY, budget_used=BudgetUsed().model_dump(mode="json"), last_error="")
    return CycleOutcome.HEALTHY


def _failed(goal: WorkItem, report: VerificationReport, trace_id: str) -> tuple[CycleOutcome, WorkItem | None]:
    if goal.status != WorkItemStatus.FAILED:
        move(goal, WorkItemStatus.FAILED, reason=WorkReason.VERIFICATION, last_error=report.explain())
    if not _spawns(goal.spec):
        return CycleOutcome.FAILED, None
    repairs = GoalCycle.objects.filter(goal=goal, spawned__isnull=False)
    # A check that fails again while its repair runs must not start a second one.
    if repairs.exclude(spawned__status__in=rules.FINAL).exists():
        return CycleOutcome.UNDER_WAY, None
    counter = goal.used.exhausted(goal.spec.budget)
    if counter:
        move(goal, WorkItemStatus.PAUSED, reason=WorkReason.BUDGET, last_error=counter)
        return CycleOutcome.PARKED, None
    return _spawn(goal, report, trace_id)


def _spawns(spec: WorkItemSpec) -> bool:
    escalation = spec.escalation.get(spec.on_failure)
    return spec.on_failure == EscalationKind.SPAWN_TASK or (
        escalation is not None and escalation.action == EscalationKind.SPAWN_TASK
    )


def _spawn(goal: WorkItem, report: VerificationReport, trace_id: str) -> tuple[CycleOutcome, WorkItem]:
    """Start the repair under the standing approval if it covers it, else ask a person."""
    item = create_item(
        _repair(goal.spec, report),
        deployment_id=goal.deployment_id,
        session_id=None,
        trace_id=trace_id,
        requested_by=f"goal:{goal.pk}",
    )
    verdict = authorize_standing(item, goal)
    if verdict is not None and verdict.ok:
        return CycleOutcome.SPAWNED, item
    enqueue_card(item)
    return CycleOutcome.ASKED, item


def _repair(policy: WorkItemSpec, report: VerificationReport) -> WorkItemSpec:
    """Return the template filled with what failed, and nothing else.

    Raises `SilasError("bad_template")` if the names of the goal's checks do not fit its template.
    """
    call = goal_templates.template_call(policy.failure_context or "")
    tool = screening.resolve_calls([call], screening.tools_in(policy.skills))[0].tool
    skills = tuple(inherited_skills(policy.skills).to([tool.skill]))
    task = standing_tasks.child_task(
        policy, ChildValues("", skills, TemplateValues(call.args, standing_tasks.failure_line(report)))
    )
    if task is None:
        raise SilasError(
            ErrorCode.BAD_TEMPLATE, gettext("The names of the failed checks don't fit the goal's template.")
        )
    return task


def on_work_changed(item: WorkItem) -> None:
    """Add what a finished repair used to its goal's use."""
    if WorkItemStatus(item.status) not in rules.FINAL or not item.parent_id:
        return
    if not GoalCycle.objects.filter(spawned=item).exists():
        return
    goal = lock_item(item.parent_id)
    goal.budget_used = goal.used.merge(item.used).model_dump(mode="json")
    goal.save(update_fields=["budget_used"])


def resume_goal(goal_id: Any, *, user: User | None, actor: str = "") -> WorkItem:
    """Resume a parked goal with its whole budget, see `require_operator`. Raises 409 for a goal that is not parked."""
    by = require_operator(user, actor)
    goal = lock_item(goal_id)
    if not goal.is_resumable:
        raise SilasError(ErrorCode.NOT_PARKED)
    move(goal, WorkItemStatus.FAILED, budget_used=BudgetUsed().model_dump(mode="json"))
    start_schedule(goal)
    record(AuditEvent.GOAL_RESUMED, actor=by, subject=f"work:{goal.pk}", data={})
    return goal
