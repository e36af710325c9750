"""What a work item waits for, and until when. Every wait has an end, for which a job is scheduled.

Inside a scope that holds the item's lock.
"""

from __future__ import annotations

from datetime import datetime

from apps.bus import services as bus
from apps.bus.enums import Kind
from apps.work.enums import ResearchState, Waiting
from apps.work.models import Course, ResearchRequest


def begin_wait(course: Course, kind: Waiting, until: datetime) -> None:
    """Store the wait and schedule its end."""
    course.waiting_for, course.waiting_until = kind, until
    course.save(update_fields=["waiting_for", "waiting_until", "guidance"])
    schedule_end(course)


def forget_wait(course: Course) -> None:
    """Clear the wait. The scheduled job finds nothing to do."""
    if not course.waiting_for:
        return
    course.waiting_for, course.waiting_until = "", None
    course.save(update_fields=["waiting_for", "waiting_until"])


def schedule_end(course: Course) -> None:
    """Schedule the end of the first of the item's waits."""
    if due_at := next_end(course):
        bus.schedule(Kind.WAIT_END, scope_id=course.work_item_id, due_at=due_at)


def next_end(course: Course) -> datetime | None:
    """Return when the item's wait, or a planner's question about it, ends next."""
    open_requests = ResearchRequest.objects.filter(
        planning__work_item_id=course.work_item_id, state=ResearchState.ASKED
    )
    ends = [course.waiting_until, *open_requests.order_by("deadline").values_list("deadline", flat=True)[:1]]
    return min((end for end in ends if end is not None), default=None)
