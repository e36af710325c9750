"""Alerts: how a member is told about new cards while away, by push or email."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django import forms
from django.conf import settings
from django.http import HttpRequest, JsonResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_POST, require_safe

from apps.approvals.cards import alerts, webpush
from apps.approvals.enums import AlertWay
from apps.approvals.models.alerts import MAX_MINUTES, MIN_MINUTES
from apps.console.base import page
from apps.console.members import DECIDING_ROLES, StaffRequest, staff_view
from kernel.errors import SilasError

_NAMES = ("Edg", "OPR", "Firefox", "Chrome", "Safari")
_SHOWN = {"Edg": "Edge", "OPR": "Opera"}
_SYSTEMS = ("Android", "iPhone", "iPad", "Windows", "Mac OS", "Linux")


class AlertForm(forms.Form):
    way = forms.ChoiceField(label=gettext_lazy("Alert me"), choices=AlertWay.choices)
    minutes = forms.IntegerField(
        label=gettext_lazy("Email delay in minutes"),
        min_value=MIN_MINUTES,
        max_value=MAX_MINUTES,
        help_text=gettext_lazy("Sent if you haven't viewed the card by then. At most one email every ten minutes."),
    )


@require_safe
@staff_view(*DECIDING_ROLES)
def alerts_page(request: StaffRequest) -> HttpResponseBase:
    choice = alerts.alert_choice(request.member.user)
    way, minutes = (choice.way, choice.minutes) if choice else (AlertWay.OFF, 10)
    return _page(request, AlertForm(initial={"way": way, "minutes": minutes}))


@require_POST
@staff_view(*DECIDING_ROLES)
def choose(request: StaffRequest) -> HttpResponseBase:
    form = AlertForm(request.POST)
    if not form.is_valid():
        return _page(request, form, status=400)
    alerts.set_alert_choice(
        request.member.user, way=AlertWay(form.cleaned_data["way"]), minutes=form.cleaned_data["minutes"]
    )
    return redirect("console-alerts")


def add_browser(request: HttpRequest) -> HttpResponseBase:
    """Add this browser, for the page's own script: refusals are JSON with a code, as in the API."""
    response: HttpResponseBase = _add_browser(request)
    refusal: SilasError | None = request.__dict__.get("refusal")
    return JsonResponse(refusal.as_json(), status=refusal.status) if refusal else response


@require_POST
@staff_view(*DECIDING_ROLES)
def _add_browser(request: StaffRequest) -> HttpResponseBase:
    subscription = {name: request.POST.get(name, "") for name in ("endpoint", "p256dh", "auth")}
    alerts.subscribe(request.member.user, browser=_browser(request.headers.get("User-Agent", "")), **subscription)
    return JsonResponse({"subscribed": True})


@require_POST
@staff_view(*DECIDING_ROLES)
def remove_browser(request: StaffRequest, subscription_id: UUID) -> HttpResponseBase:
    alerts.unsubscribe(subscription_id, user=request.member.user)
    return redirect("console-alerts")


def _page(request: StaffRequest, form: AlertForm, *, status: int = 200) -> HttpResponseBase:
    context: dict[str, Any] = {
        "form": form,
        "browsers": alerts.push_subscriptions(request.member.user),
        "key": webpush.public_key() if settings.SILAS_SECRETS_KEY else "",
        "has_email": bool(settings.EMAIL_HOST),
    }
    return page(request, "console/alerts.html", at="account", status=status, **context)


def _browser(agent: str) -> str:
    """Return the browser and system of a user agent, such as `Firefox, Linux`."""
    name = next((name for name in _NAMES if name in agent), _("Browser"))
    system = next((system for system in _SYSTEMS if system in agent), "")
    return ", ".join(filter(None, (_SHOWN.get(name, name), system)))
