"""The gallery of ready automations, and the findings of automations.

Every member can see both. Owners and approvers use a template; members who answer resolve findings.
"""

from __future__ import annotations

from uuid import UUID

from django.http.response import HttpResponseBase
from django.shortcuts import redirect
from django.views.decorators.http import require_POST, require_safe

from apps.autonomy import overview, queries
from apps.autonomy.gallery import TEMPLATES
from apps.autonomy.services import session_start
from apps.autonomy.services.findings import resolve_finding
from apps.autonomy.services.gallery_use import use_template
from apps.console.base import idempotency_key, page
from apps.console.members import ANSWERING_ROLES, DECIDING_ROLES, StaffRequest, staff_view
from apps.console.pages.automations.views import after_start, run_line
from apps.tenants.models import Deployment
from kernel.ids import parse_id
from kernel.language import gettext


@require_safe
@staff_view()
def gallery(request: StaffRequest) -> HttpResponseBase:
    glances = overview.task_overviews()
    counts = queries.open_findings_by_task()
    templates = []
    for template in TEMPLATES:
        used = [
            (glance, run_line(glance.last) if glance.last else None, counts.get(glance.task.pk, 0))
            for glance in glances
            if glance.task.playbook == template.key
        ]
        templates.append((template, _when(template.schedule), used))
    return page(
        request,
        "console/gallery.html",
        at="runs",
        templates=templates,
        deployments=list(Deployment.objects.order_by("title")),
        allowed=queries.autonomy_settings(),
        opted=queries.has_opted_in(request.member.user.pk),
    )


def _when(schedule: str) -> str:
    """A template's schedule in the reader's language. Templates run hourly, daily, or on Mondays."""
    minute, hour, _day, _month, weekday = schedule.split()
    if hour == "*":
        return gettext("Every hour")
    time = f"{int(hour):02}:{int(minute):02}"
    if weekday == "1":
        return gettext("Every Monday at %(time)s") % {"time": time}
    return gettext("Every day at %(time)s") % {"time": time}


@require_POST
@staff_view(*DECIDING_ROLES)
def use(request: StaffRequest, key: str) -> HttpResponseBase:
    """Create the automation for the chosen chatbot and run it once."""
    # An id that was typed by hand is of no chatbot.
    deployment_id = parse_id(request.POST.get("chatbot", "")) or UUID(int=0)
    task = use_template(key, user=request.member.user, deployment_id=deployment_id)
    return after_start(request, session_start.run_now(task.pk, user=request.member.user, once=idempotency_key(request)))


@require_POST
@staff_view(*ANSWERING_ROLES)
def resolve(request: StaffRequest, finding_id: UUID) -> HttpResponseBase:
    finding = resolve_finding(finding_id, user=request.member.user)
    return redirect("console-task", finding.task_id)
