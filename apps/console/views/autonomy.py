"""What may run by itself here? The company's settings, each member's own yes, and who outside is told.

Only owners change what the company allows and who is told. A webhook's secret is shown once and never again.
"""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.http import QueryDict
from django.http.response import HttpResponseBase
from django.shortcuts import redirect
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from apps.autonomy import overview, queries
from apps.autonomy.enums import TaskEvent
from apps.autonomy.services import consent, notices, webhooks
from apps.console.members import DECIDING_ROLES, StaffRequest, staff_view
from apps.console.task_forms import SettingsForm, settings_as_they_are
from apps.console.views.pages import mark_of, page
from apps.tenants.enums import Role
from kernel.errors import SilasError

SHOWN = 30


@require_http_methods(["GET", "HEAD", "POST"])
@staff_view(*DECIDING_ROLES)
def settings(request: StaffRequest) -> HttpResponseBase:
    if request.method != "POST":
        return _shown(request)
    form = SettingsForm(request.POST)
    if not form.is_valid():
        return _shown(request, form)
    consent.change_settings(user=request.member.user, **form.said)
    return redirect("console-autonomy")


@require_POST
@staff_view(*DECIDING_ROLES)
def opt(request: StaffRequest) -> HttpResponseBase:
    """A member's own yes or no, and nobody else's."""
    said = consent.opt_in if request.POST.get("allowed") == "1" else consent.opt_out
    said(request.member.user)
    return redirect("console-autonomy")


@require_http_methods(["GET", "HEAD", "POST"])
@staff_view(Role.OWNER)
def add_webhook(request: StaffRequest) -> HttpResponseBase:
    """The page with the secret is the answer to the form alone: loaded again, it is the settings."""
    if request.method != "POST":
        return redirect("console-autonomy")
    try:
        made, secret = webhooks.save_webhook(
            request.POST.get("url", ""),
            user=request.member.user,
            events=request.POST.getlist("events"),
            once=mark_of(request),
        )
    except SilasError as refusal:
        if refusal.status != 422:
            raise
        return _shown(request, refusal=refusal, said=request.POST)
    return _shown(request, made=made, secret=secret) if secret else redirect("console-autonomy")


@require_POST
@staff_view(Role.OWNER)
def delete_webhook(request: StaffRequest, webhook_id: UUID) -> HttpResponseBase:
    webhooks.delete_webhook(webhook_id, user=request.member.user)
    return redirect("console-autonomy")


@require_safe
@staff_view()
def notices_page(request: StaffRequest) -> HttpResponseBase:
    user, unread = request.member.user, request.GET.get("unread") == "true"
    lines = [notices.line_for(notice) for notice in queries.notices(user, unread=unread)]
    return page(request, "console/notices.html", at="notices", notices=lines, only_unread=unread)


@require_POST
@staff_view()
def read_notice(request: StaffRequest, notice_id: UUID) -> HttpResponseBase:
    """Read, and off to what it is about. Twice changes nothing."""
    notice = notices.mark_read(notice_id, user=request.member.user)
    return redirect(notices.line_for(notice).path)


@require_POST
@staff_view()
def read_all_notices(request: StaffRequest) -> HttpResponseBase:
    notices.mark_all_read(user=request.member.user)
    return redirect("console-notices")


def _shown(
    request: StaffRequest,
    form: SettingsForm | None = None,
    *,
    refusal: SilasError | None = None,
    made: Any = None,
    secret: str = "",
    said: QueryDict | None = None,
) -> HttpResponseBase:
    wrong = refusal is not None or form is not None
    return page(
        request,
        "console/autonomy.html",
        at="runs",
        status=422 if wrong else 200,
        form=form or SettingsForm(initial=settings_as_they_are()),
        allowed=queries.autonomy_settings(),
        opted=queries.has_opted_in(request.member.user.pk),
        hooks=overview.webhooks(),
        deliveries=overview.deliveries(SHOWN) if request.member.may_administer else (),
        events=TaskEvent.values,
        refusal=refusal,
        made=made,
        secret=secret,
        url=said.get("url", "") if said else "",
        chosen=said.getlist("events") if said else (),
    )
