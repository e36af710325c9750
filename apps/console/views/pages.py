"""What does every console page share? The rail with its counts, and how a page or a part of it is answered."""

from __future__ import annotations

from typing import Any
from uuid import UUID, uuid4

from django.http.response import HttpResponseBase
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.utils import timezone
from django.utils.cache import patch_cache_control
from django.views.decorators.http import require_safe

from apps.approvals.queries import open_count
from apps.audit.queries import head_of
from apps.autonomy.services.notices import unread_count
from apps.console.members import StaffRequest, staff_view
from apps.guard.queries import highest_alert
from apps.sessions.inbox.queries import unassigned_count
from apps.tenants import first_run, visits
from kernel.errors import SilasError


@require_safe
@staff_view()
def start(request: StaffRequest) -> HttpResponseBase:
    """Deciders begin where decisions wait, everybody else with the conversations; an owner whose company has begun its
    first chatbot and not finished, there."""
    if request.member.may_administer and first_run.unfinished():
        return redirect("console-begin")
    return redirect("console-review" if request.member.may_decide else "console-inbox")


@require_safe
@staff_view()
def rail(request: StaffRequest) -> HttpResponseBase:
    """The counts, and how far the log has come: what a page without its line asks for now and then."""
    visits.record_visit(request.member.user)
    response = page(request, "console/_rail.html", at=request.GET.get("at", ""))
    response["X-Console-Seen"] = (response.context_data or {})["seen"]
    return response


def mark_of(request: StaffRequest) -> UUID | None:
    """What tells this form from the same one sent again. Raises 422 for what is none; no mark is no promise."""
    said = request.POST.get("once", "")
    try:
        return UUID(said) if said else None
    except ValueError:
        raise SilasError("form_unreadable", "This page is not as we sent it. Load it again.", status=422) from None


def page(request: StaffRequest, template: str, *, at: str, status: int = 200, **shown: Any) -> TemplateResponse:
    """The page `template` with the rail standing `at`; for HTMX without the frame around it. `once` tells what is sent
    from this page from the same sent again."""
    part = bool(request.htmx) and not request.htmx.history_restore_request
    shared = {
        "at": at,
        "frame": "console/part.html" if part else "console/base.html",
        "member": request.member,
        "seen": head_of(request.member.tenant.pk).seq,
        "waiting": open_count(),
        "wanted": unassigned_count(),
        "money": highest_alert(timezone.localdate()) if request.member.may_decide else 0,
        "unread": unread_count(request.member.user),
        "once": uuid4(),
    }
    response = TemplateResponse(request, template, {**shared, **shown}, status=status)
    patch_cache_control(response, private=True, no_store=True)
    return response
