"""Automation settings: the company's limits, each member's own consent, and webhooks; and the page of notifications.

Only owners change the company's settings and webhooks. A webhook's secret is shown only once.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from uuid import UUID

from django.http import QueryDict
from django.http.response import HttpResponseBase
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from apps.autonomy import overview, queries
from apps.autonomy.models import Webhook
from apps.autonomy.services import consent, notices, webhooks
from apps.console.base import idempotency_key, page
from apps.console.members import DECIDING_ROLES, StaffRequest, staff_view
from apps.console.pages.automations.forms import SettingsForm, initial_settings
from apps.events.webhooks import MOST_REPLAYED, replay_since, send_test
from apps.tenants.enums import Role
from kernel.clock import now
from kernel.error_codes import ErrorCode
from kernel.errors import SilasError

SHOWN = 30
# Hours, with their words on the page.
OVERLAPS = {
    24: gettext_lazy("Valid for another 24 hours"),
    168: gettext_lazy("Valid for another 7 days"),
    0: gettext_lazy("Invalid at once"),
}
REPLAYS = {1: gettext_lazy("Last hour"), 24: gettext_lazy("Last 24 hours"), 168: gettext_lazy("Last 7 days")}


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


@require_POST
@staff_view(Role.OWNER)
def test_webhook(request: StaffRequest, webhook_id: UUID) -> HttpResponseBase:
    """Post a test event to the webhook; the list of deliveries shows how it went."""
    send_test(webhook_id, user=request.member.user)
    return redirect(f"{reverse('console-autonomy')}#webhooks")


@require_http_methods(["GET", "HEAD", "POST"])
@staff_view(Role.OWNER)
def rotate_secret(request: StaffRequest, webhook_id: UUID) -> HttpResponseBase:
    """Replace a webhook's secret. The new one is only in the answer to this form; reloading shows the settings."""
    if request.method != "POST":
        return redirect("console-autonomy")
    hours = _choice(request.POST.get("overlap", ""), OVERLAPS)
    mark = request.POST.get("mark") or "unknown"
    try:
        webhook, secret = webhooks.rotate_secret(
            webhook_id, user=request.member.user, overlap=timedelta(hours=hours), mark=mark
        )
    except SilasError as refusal:
        if refusal.code != ErrorCode.CHANGED_MEANWHILE:
            raise
        return redirect("console-autonomy")
    return _render(
        request, webhook=webhook, secret=secret, rotated=True, until=webhook.previous_until if hours else None
    )


@require_POST
@staff_view(Role.OWNER)
def replay_events(request: StaffRequest, webhook_id: UUID) -> HttpResponseBase:
    """Post the events of the last hours to a webhook again; the list of deliveries shows how it went."""
    since = now() - timedelta(hours=_choice(request.POST.get("since", ""), REPLAYS))
    count = replay_since(webhook_id, since, user=request.member.user)
    return redirect(f"{reverse('console-autonomy')}?replayed={count}#webhooks")


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
    rotated: bool = False,
    until: datetime | None = None,
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
        hooks=[(hook, webhooks.secret_mark(hook)) for hook in overview.webhooks()],
        deliveries=overview.deliveries(SHOWN) if request.member.may_administer else (),
        events=webhooks.event_types(),
        refusal=refusal,
        made=webhook,
        rotated=rotated,
        until=until,
        secret=secret,
        overlaps=OVERLAPS.items(),
        periods=REPLAYS.items(),
        replayed=_replayed(request.GET.get("replayed", "")),
        most_replayed=MOST_REPLAYED,
        url=data.get("url", "") if data else "",
        chosen=data.getlist("events") if data else (),
    )


def _choice(given: str, choices: Mapping[int, object]) -> int:
    """One of the choices, the first for anything else."""
    return next((hours for hours in choices if str(hours) == given), next(iter(choices)))


def _replayed(given: str) -> int | None:
    return min(int(given), MOST_REPLAYED) if given.isdecimal() and len(given) < 6 else None
