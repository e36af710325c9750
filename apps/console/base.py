"""What all console pages share: the navigation rail with its counts, and how a page or a part of it is rendered."""

from __future__ import annotations

from uuid import UUID, uuid4

from django.http.response import HttpResponseBase
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.utils import timezone
from django.utils.cache import patch_cache_control
from django.views.decorators.http import require_safe

from apps.approvals.queries import waiting_count
from apps.audit.queries import head_of
from apps.autonomy.services.notices import unread_count
from apps.console import navigation
from apps.console.members import StaffRequest, staff_view
from apps.guard.queries import highest_alert
from apps.inbox import teams
from apps.inbox.queries import unassigned_count
from apps.tenants import first_run
from kernel.error_codes import ErrorCode
from kernel.errors import SilasError
from kernel.language import MEMBER_LANGUAGES

THEME_COOKIE = "theme"
THEMES = ("light", "dark")


@require_safe
@staff_view()
def start(request: StaffRequest) -> HttpResponseBase:
    """Go to Review for members who decide, else to the Inbox. For owners, an unfinished set-up comes first."""
    if request.member.may_administer and first_run.unfinished():
        return redirect("console-begin")
    return redirect("console-review" if request.member.may_decide else "console-inbox")


@require_safe
@staff_view()
def rail(request: StaffRequest) -> HttpResponseBase:
    """Refresh the rail: the counts, and the number of the last audit entry for pages without a socket."""
    teams.record_presence(request.member.user)
    response = page(request, "console/_rail.html", at=request.GET.get("at", ""))
    response["X-Console-Seen"] = (response.context_data or {})["seen"]
    return response


def chosen_theme(request: StaffRequest) -> str:
    """The theme that was chosen in this browser; empty follows the system. Kept in a cookie, which the server reads, so
    that no page is drawn in the wrong theme first and each device may have its own."""
    theme = request.COOKIES.get(THEME_COOKIE, "")
    return theme if theme in THEMES else ""


def idempotency_key(request: StaffRequest) -> UUID | None:
    """Return the key of this form, which is the same if the form is sent again; None if it has none.

    Raises `SilasError`: `form_unreadable` 422.
    """
    text = request.POST.get("once", "")
    try:
        return UUID(text) if text else None
    except ValueError:
        raise SilasError(ErrorCode.FORM_UNREADABLE) from None


def page(request: StaffRequest, template: str, *, at: str, status: int = 200, **context: object) -> TemplateResponse:
    """Render `template` with the rail at `at`; for HTMX without the frame around it.

    `once` is the idempotency key of the forms on this page.
    """
    part, member = bool(request.htmx) and not request.htmx.history_restore_request, request.member
    match = request.resolver_match
    settings_page = navigation.settings_page(match.url_name or "") if match else None
    counts = {
        "wanted": unassigned_count(),
        "waiting": waiting_count(),
        "unread": unread_count(member.user),
        "money": highest_alert(timezone.localdate()) if member.may_decide else 0,
    }
    shared = {
        **counts,
        "at": at,
        "frame": "console/part.html" if part else "console/base.html",
        "member": member,
        "seen": head_of(member.tenant.pk).seq,
        "rail": navigation.rail(member, **counts),
        "settings_page": settings_page,
        "settings_groups": navigation.settings_for(member) if settings_page and not part else (),
        "languages": MEMBER_LANGUAGES,
        "theme": chosen_theme(request),
        "once": uuid4(),
    }
    response = TemplateResponse(request, template, {**shared, **context}, status=status)
    patch_cache_control(response, private=True, no_store=True)
    return response
