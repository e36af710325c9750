"""Run the checks of projects and goals in a worker, outside of every transaction, like any verification.

`run_project_checks` handles `system_event` on the executors' queue, `run_goal_checks` handles `goal_cycle`: one run of
the checks, then one short scope that stores what follows (spec 5.2.2 step 5, 5.2.3 steps 1 to 3). Nothing here acts;
what a goal finds needs approval.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from datetime import datetime
from uuid import UUID

from apps.bus.deliveries import Delivery
from apps.skills import queries as skills
from apps.work import artifacts, goal_discovery
from apps.work.checks import CheckRound, check_rounds, within_reach
from apps.work.enums import WorkItemType
from apps.work.locks import lock_item
from apps.work.models import GoalCycle
from apps.work.queries import children_of, work_item
from apps.work.schemas import VerificationReport
from apps.work.services import candidates, goal_cycles, outbox, projects
from apps.work.verification import run_checks
from kernel import tracing
from kernel.clock import now
from kernel.tenancy import in_scope
from kernel.tracing import SpanName

_CheckResults = tuple[VerificationReport, Sequence[Mapping[str, object]]]


async def run_project_checks(delivery: Delivery) -> None:
    """Handle `system_event` on the executors' queue: run a project's own checks after its last task."""
    assert delivery.message.task_id is not None
    report, _ = await _run_checks(delivery.tenant_id, delivery.message.task_id)
    await delivery.commit(_conclude_project, delivery.message.task_id, report)


async def run_goal_checks(delivery: Delivery) -> None:
    """Handle `goal_cycle`: check a goal that is due, then repeat at its next due time."""
    goal_id = UUID(delivery.message.subject)
    goal = await in_scope(delivery.tenant_id, work_item, goal_id)
    # A delivery may come twice or late: only a goal that is due is checked.
    results = await _run_checks(delivery.tenant_id, goal_id) if goal_cycles.is_due(goal) else None
    await delivery.reschedule(_conclude_cycle, goal_id, results)


async def run_goal_checks_now(tenant_id: UUID, goal_id: UUID) -> GoalCycle | None:
    """Check a scheduled goal now and route what it finds. In a process that may open cards, outside of every scope."""
    report, todo = await _run_checks(tenant_id, goal_id)
    return await in_scope(tenant_id, _conclude_here, goal_id, report, todo)


async def _run_checks(tenant_id: UUID, item_id: UUID) -> _CheckResults:
    rounds = await in_scope(tenant_id, _rounds, item_id)
    with tracing.span(SpanName.VERIFICATION) as span:
        reports = [await asyncio.to_thread(run_checks, result_.checks, mounts=result_.mounts) for result_ in rounds]
        report = VerificationReport(tuple(result for result_ in reports for result in result_.results))
        span.set(checks=len(report.results), passed=report.all_passed)
    return report, await goal_discovery.find_candidates(tenant_id, item_id)


def _conclude_here(goal_id: UUID, report: VerificationReport, todo: Sequence[Mapping[str, object]]) -> GoalCycle | None:
    goal, trace_id = lock_item(goal_id), tracing.trace_for_message()
    cycle = goal_cycles.conclude(goal, report, due_at=now(), trace_id=trace_id)
    if cycle is not None:
        candidates.route_candidates(goal.pk, todo, trace_id=trace_id)
    return cycle


def _rounds(item_id: UUID) -> Sequence[CheckRound]:
    item = work_item(item_id)
    spec = item.spec
    if item.type == WorkItemType.PROJECT:
        files = {name: content for task in children_of(item) for name, content in artifacts.files_of(task).items()}
        return check_rounds(spec, skills.tools_for(spec.skills), item.subject, files)
    mounts = skills.tenant_mounts(spec.skills)
    return (CheckRound(tuple(within_reach(spec.verify)), mounts),)


def _conclude_project(project_id: UUID, report: VerificationReport) -> None:
    projects.conclude(lock_item(project_id), report)


def _conclude_cycle(goal_id: UUID, results: _CheckResults | None) -> datetime | None:
    goal = lock_item(goal_id)
    if results is not None and goal.due_at is not None:
        (report, todo), trace_id = results, tracing.trace_for_message()
        cycle = goal_cycles.conclude(goal, report, due_at=goal.due_at, trace_id=trace_id)
        if cycle is not None and todo:
            outbox.enqueue_candidates(goal.pk, todo, cycle=str(cycle.pk), trace_id=trace_id)
        # Counted from now and not from when it was due: after a standstill missed checks are not made up for.
        goal_cycles.reschedule(goal)
    return goal_cycles.next_check(goal)
