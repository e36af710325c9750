"""Run a project: start it after approval, continue after each task, conclude by its own checks (spec 5.2.2).

Always holds: a task begins only when all its dependencies are done; a failed task ends the project, and tasks that have
not begun never do. Runs in the transaction that moved the task, under the project's lock (`locks.lock_item`).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from apps.approvals.models import ApprovalToken
from apps.bus import services as bus
from apps.bus.enums import Kind, Queue, Sender
from apps.work import project_rules, rules
from apps.work.budgets import BudgetUsed
from apps.work.enums import WorkItemStatus, WorkItemType, WorkReason
from apps.work.locks import lock_course, lock_item
from apps.work.models import WorkItem
from apps.work.queries import children_of
from apps.work.schemas import VerificationReport
from apps.work.services import completion, execution_queue
from apps.work.services.items import move
from kernel.language import in_english
from kernel.taint import Taint

CHECK_EVENT = "check"
_OVER = (WorkItemStatus.FAILED, WorkItemStatus.STUCK, WorkItemStatus.BLOCKED)


def start(project: WorkItem, token: ApprovalToken) -> None:
    """Attach the approval to every task and queue those without dependencies."""
    WorkItem.objects.filter(parent=project).update(approval_token=token)
    WorkItem.objects.filter(pk=project.pk).update(approval_token=token)
    project.approval_token = token
    move(project, WorkItemStatus.RUNNING)
    _continue(project)


def on_work_changed(item: WorkItem) -> None:
    """Continue the project of a task that ended; end the tasks of a project that ended."""
    if WorkItemStatus(item.status) not in rules.FINAL:
        return
    if item.type == WorkItemType.PROJECT:
        # Only tasks that have not begun: a running task ends by itself and starts nothing more.
        reason = WorkReason(item.reason) if item.reason in _INHERITED_REASONS else WorkReason.DEPENDENCY
        for task in WorkItem.objects.filter(parent=item, status__in=[WorkItemStatus.PENDING, WorkItemStatus.PAUSED]):
            completion.end_item(lock_item(task.pk), WorkItemStatus.BLOCKED, reason)
    elif item.parent_id and item.parent and item.parent.type == WorkItemType.PROJECT:
        _task_ended(item)


def _task_ended(task: WorkItem) -> None:
    assert task.parent_id is not None
    project = lock_item(task.parent_id)
    # Of two tasks that end at once the second waits for the project's lock and finds it over.
    if project.status != WorkItemStatus.RUNNING:
        return
    tasks = children_of(project)
    used = reduce(BudgetUsed.merge, (sibling.used for sibling in tasks), BudgetUsed())
    project.budget_used = used.model_dump(mode="json")
    project.save(update_fields=["budget_used"])
    if task.status != WorkItemStatus.DONE:
        called_off = task.reason == WorkReason.CANCELLED
        reason = WorkReason.CANCELLED if called_off else WorkReason.CHILD
        completion.end_item(
            project, WorkItemStatus.FAILED, reason, error=f"{task.title}: {in_english(WorkReason(task.reason).label)}"
        )
    else:
        _continue(project)


def _continue(project: WorkItem) -> None:
    """Queue the tasks that are ready; when everything is done, the project's own checks decide."""
    tasks = children_of(project)
    statuses = {str(task.pk): task.status for task in tasks}
    counter = project.used.exhausted(project.spec.budget)
    # Finished work is checked even if the budget is used up by now.
    if project_rules.all_done(statuses):
        _check_or_finish(project, tasks)
    elif counter:
        completion.end_item(project, WorkItemStatus.STUCK, WorkReason.BUDGET, error=counter)
    else:
        depends_on = {str(task.pk): task.spec.depends_on for task in tasks}
        by_id = {str(task.pk): task for task in tasks}
        for name in project_rules.ready_tasks(depends_on, statuses):
            # A task that was queued before is on its way; a second message would run it twice.
            if not lock_course(by_id[name]).deliveries:
                execution_queue.enqueue(by_id[name])


def _check_or_finish(project: WorkItem, tasks: Sequence[WorkItem]) -> None:
    if not project.spec.verify:
        completion.end_item(project, WorkItemStatus.DONE, WorkReason.NONE, summary=_summary(tasks))
        return
    bus.send_message(
        Queue.EXECUTOR,
        kind=Kind.SYSTEM_EVENT,
        scope_id=project.pk,
        sender=Sender.RUNTIME,
        task_id=project.pk,
        trace_id=project.trace_id,
        message_id=f"check:{project.pk}",
        payload={"event": CHECK_EVENT},
        taint=Taint.AUTH,
    )


def conclude(project: WorkItem, report: VerificationReport) -> None:
    """Conclude the project by its own checks, which alone decide whether it is done (spec 5.2.2 step 5)."""
    if project.status != WorkItemStatus.RUNNING:
        return
    if report.all_passed:
        completion.end_item(project, WorkItemStatus.DONE, WorkReason.NONE, summary=_summary(children_of(project)))
    else:
        completion.end_item(project, WorkItemStatus.FAILED, WorkReason.VERIFICATION, error=report.explain())


def _summary(tasks: Sequence[WorkItem]) -> str:
    return "\n".join(task.summary or task.title for task in tasks)


_INHERITED_REASONS = (WorkReason.DECLINED, WorkReason.EXPIRED, WorkReason.CANCELLED, WorkReason.NOT_APPROVED)
