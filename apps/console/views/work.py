"""What was promised, and how far is it? Every task, project, goal and batch of the tenant; calling off and resuming.

Shows what the house wrote down: statuses, attempts, what the outside checks found. Nothing here is a model's prose but
the plan, which says whose words it is. Decisions belong to Review.
"""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.http.response import HttpResponseBase
from django.shortcuts import redirect
from django.views.decorators.http import require_POST, require_safe

from apps.approvals.models import Card
from apps.approvals.queries import standing_approvals
from apps.console.members import ANSWERING_ROLES, StaffRequest, staff_view
from apps.console.names import parted
from apps.console.views.pages import page
from apps.tenants.models import Membership
from apps.work import queries, rules, services
from apps.work.enums import WorkItemStatus, WorkItemType
from apps.work.models import Attempt, WorkItem

SHOWN = 50
_ASKED = {"visitor": "A visitor", "goal": "A goal of yours", "system": "The platform", "seed_demo": "The demo set-up"}


@require_safe
@staff_view()
def work(request: StaffRequest) -> HttpResponseBase:
    """Goals, what is under way, and what ended last; the tasks of a project stand on the project's own page."""
    found = list(queries.tasks_and_projects(SHOWN + 1).select_related("parent"))
    shown = found[:SHOWN]
    return page(
        request,
        "console/work.html",
        at="work",
        goals=list(queries.goals()),
        standing=standing_approvals(),
        under_way=[item for item in shown if WorkItemStatus(item.status) not in rules.FINAL],
        ended=[item for item in shown if WorkItemStatus(item.status) in rules.FINAL],
        more=len(found) > SHOWN,
    )


@require_safe
@staff_view()
def item(request: StaffRequest, item_id: UUID) -> HttpResponseBase:
    found = queries.work_item(item_id)
    return page(request, "console/work_item.html", at="work", item=found, **_shown(request, found))


def _shown(request: StaffRequest, item: WorkItem) -> dict[str, Any]:
    ended = WorkItemStatus(item.status) in rules.FINAL
    is_goal = item.type == WorkItemType.GOAL
    return {
        "spec": item.spec,
        "asked_by": _asked_by(item),
        "calls": item.spec.calls if not is_goal else (),
        "tasks": queries.children_of(item) if item.type == WorkItemType.PROJECT else (),
        "cycles": list(queries.cycles_of(item, SHOWN)) if is_goal else (),
        "attempts": list(_attempts(item)),
        "files": queries.files_left_by(item),
        "card": Card.objects.filter(subject_kind="work_item", subject_id=item.pk).order_by("-created_at").first(),
        "may_cancel": request.member.may_answer and not ended and not is_goal,
        "may_resume": request.member.may_answer and is_goal and item.status == WorkItemStatus.PAUSED,
    }


def _asked_by(item: WorkItem) -> str:
    """Who asked, in words: a member by name, anybody else by what they are."""
    kind, given = parted(item.requested_by)
    if kind == "user" and given and (member := Membership.objects.filter(user_id=given).select_related("user").first()):
        return str(member.user.display_name)
    return _ASKED.get(kind, "Somebody")


def _attempts(item: WorkItem) -> Any:
    attempts = Attempt.objects.filter(work_item=item).select_related("verification")
    return attempts.order_by("number")


@require_POST
@staff_view(*ANSWERING_ROLES)
def cancel(request: StaffRequest, item_id: UUID) -> HttpResponseBase:
    services.cancel_for_staff(item_id, user=request.member.user)
    return redirect("console-work-item", item_id)


@require_POST
@staff_view(*ANSWERING_ROLES)
def resume(request: StaffRequest, item_id: UUID) -> HttpResponseBase:
    services.resume_goal(item_id, user=request.member.user)
    return redirect("console-work-item", item_id)
