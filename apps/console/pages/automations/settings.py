"""Automation settings: the company's limits, each member's own consent, and webhooks; and the page of notifications.

Only owners change the company's settings and webhooks. A webhook's secret is shown only once.
"""

from __future__ import annotations

from uuid import UUID

from django.http import QueryDict
from django.http.response import HttpResponseBase
from django.shortcuts import redirect
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from apps.autonomy import overview, queries
from apps.autonomy.enums import TaskEvent
from apps.autonomy.models import Webhook
from apps.autonomy.services import consent, notices, webhooks
from apps.console.base import idempotency_key, page
from apps.console.members import DECIDING_ROLES, StaffRequest, staff_view
from apps.console.pages.automations.forms import SettingsForm, initial_settings
from apps.tenants.enums import Role
from kernel.errors import SilasError

SHOWN = 30


@require_http_methods(["GET", "HEAD", "POST"])
@staff_view(*DECIDING_ROLES)
def settings(request: StaffRequest) -> HttpResponseBase:
    if request.method != "POST":
        return _render(request)
    form = SettingsForm(request.POST)
    if not form.is_valid():
        return _render(request, form)
    consent.change_settings(user=request.member.user, **form.values)
    return redirect("console-autonomy")


@require_POST
@staff_view(*DECIDING_ROLES)
def opt(request: StaffRequest) -> HttpResponseBase:
    """Turn the member's own automations on or off."""
    change = consent.opt_in if request.POST.get("allowed") == "1" else consent.opt_out
    change(request.member.user)
    return redirect("console-autonomy")


@require_http_methods(["GET", "HEAD", "POST"])
@staff_view(Role.OWNER)
def add_webhook(request: StaffRequest) -> HttpResponseBase:
    """Add a webhook. The secret is only in the answer to this form; reloading shows the settings."""
    if request.method != "POST":
        return redirect("console-autonomy")
    try:
        webhook, secret = webhooks.save_webhook(
            request.POST.get("url", ""),
            user=request.member.user,
            events=request.POST.getlist("events"),
            once=idempotency_key(request),
        )
    except SilasError as refusal:
        if refusal.status != 422:
            raise
        return _render(request, refusal=refusal, data=request.POST)
    return _render(request, webhook=webhook, secret=secret) if secret else redirect("console-autonomy")


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
    """Mark the notification as read and go to its page."""
    notice = notices.mark_read(notice_id, user=request.member.user)
    return redirect(notices.line_for(notice).path)


@require_POST
@staff_view()
def read_all_notices(request: StaffRequest) -> HttpResponseBase:
    notices.mark_all_read(user=request.member.user)
    return redirect("console-notices")


def _render(
    request: StaffRequest,
    form: SettingsForm | None = None,
    *,
    refusal: SilasError | None = None,
    webhook: Webhook | None = None,
    secret: str = "",
    data: QueryDict | None = None,
) -> HttpResponseBase:
    wrong = refusal is not None or form is not None
    return page(
        request,
        "console/autonomy.html",
        at="runs",
        status=422 if wrong else 200,
        form=form or SettingsForm(initial=initial_settings()),
        allowed=queries.autonomy_settings(),
        opted=queries.has_opted_in(request.member.user.pk),
        hooks=overview.webhooks(),
        deliveries=overview.deliveries(SHOWN) if request.member.may_administer else (),
        events=TaskEvent.values,
        refusal=refusal,
        made=webhook,
        secret=secret,
        url=data.get("url", "") if data else "",
        chosen=data.getlist("events") if data else (),
    )
