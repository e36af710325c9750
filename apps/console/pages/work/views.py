"""Work: the tenant's tasks, projects, goals and batches with their status, and cancelling and resuming them.

Everything shown is recorded by the platform: statuses, attempts and independent checks. Only the plan is written by a
model, and is marked as such. Decisions are made in Review.
"""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.http.response import HttpResponseBase
from django.shortcuts import redirect
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_POST, require_safe

from apps.approvals.queries import latest_card_about, standing_approvals
from apps.console.base import page
from apps.console.members import ANSWERING_ROLES, StaffRequest, staff_view
from apps.console.names import parse_reference
from apps.tenants.models import Membership
from apps.work import queries, rules, services
from apps.work.enums import WorkItemStatus, WorkItemType
from apps.work.models import WorkItem

SHOWN = 50
_REQUESTERS = {
    "visitor": gettext_lazy("A visitor"),
    "goal": gettext_lazy("One of your goals"),
    "system": gettext_lazy("The platform"),
    "seed_demo": gettext_lazy("The demo setup"),
    "user": gettext_lazy("A former member"),
}


@require_safe
@staff_view()
def work(request: StaffRequest) -> HttpResponseBase:
    """Show goals, work in progress and finished work; the tasks of a project are on its own page."""
    items = list(queries.tasks_and_projects(SHOWN + 1))
    shown = items[:SHOWN]
    return page(
        request,
        "console/work.html",
        at="work",
        goals=list(queries.goals()),
        standing=standing_approvals(),
        under_way=[item for item in shown if WorkItemStatus(item.status) not in rules.FINAL],
        ended=[item for item in shown if WorkItemStatus(item.status) in rules.FINAL],
        more=len(items) > SHOWN,
    )


@require_safe
@staff_view()
def item(request: StaffRequest, item_id: UUID) -> HttpResponseBase:
    row = queries.work_item(item_id)
    return page(request, "console/work_item.html", at="work", item=row, **_context(request, row))


def _context(request: StaffRequest, item: WorkItem) -> dict[str, Any]:
    is_goal = item.type == WorkItemType.GOAL
    return {
        "spec": item.spec,
        "asked_by": _asked_by(item),
        "calls": item.spec.calls if not is_goal else (),
        "tasks": queries.children_of(item) if item.type == WorkItemType.PROJECT else (),
        "cycles": list(queries.cycles_of(item, SHOWN)) if is_goal else (),
        "attempts": queries.attempts_of(item),
        "files": queries.files_left_by(item),
        "card": latest_card_about("work_item", item.pk),
        "may_cancel": request.member.may_answer and item.is_cancellable,
        "may_resume": request.member.may_answer and item.is_resumable,
    }


def _asked_by(item: WorkItem) -> str:
    """Return who requested the work: a member by name, anyone else by their kind."""
    kind, user_id = parse_reference(item.requested_by)
    if (
        kind == "user"
        and user_id
        and (member := Membership.objects.filter(user_id=user_id).select_related("user").first())
    ):
        return str(member.user.display_name)
    return str(_REQUESTERS.get(kind) or _("Unknown"))


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
