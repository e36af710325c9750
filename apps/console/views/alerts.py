"""Your account → Alerts: how are you told of new cards while you are not here?"""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django import forms
from django.conf import settings
from django.http import HttpRequest, JsonResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect
from django.views.decorators.http import require_POST, require_safe

from apps.approvals import webpush
from apps.approvals.enums import AlertWay
from apps.approvals.models.alerts import MAX_MINUTES, MIN_MINUTES
from apps.approvals.services import alerts
from apps.console.members import DECIDING_ROLES, StaffRequest, staff_view
from apps.console.views.pages import page
from kernel.errors import SilasError

_NAMES = ("Edg", "OPR", "Firefox", "Chrome", "Safari")
_SHOWN = {"Edg": "Edge", "OPR": "Opera"}
_SYSTEMS = ("Android", "iPhone", "iPad", "Windows", "Mac OS", "Linux")


class AlertForm(forms.Form):
    way = forms.ChoiceField(label="Tell me", choices=AlertWay.choices)
    minutes = forms.IntegerField(
        label="A letter after so many minutes",
        min_value=MIN_MINUTES,
        max_value=MAX_MINUTES,
        help_text="If I have not looked at a card by then. One letter in ten minutes at most.",
    )


@require_safe
@staff_view(*DECIDING_ROLES)
def alerts_page(request: StaffRequest) -> HttpResponseBase:
    kept = alerts.alert_choice(request.member.user)
    way, minutes = (kept.way, kept.minutes) if kept else (AlertWay.OFF, 10)
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
    """For the page's own script: a refusal is the coded JSON of every API."""
    response: HttpResponseBase = _add_browser(request)
    refusal: SilasError | None = request.__dict__.get("refusal")
    return JsonResponse(refusal.as_json(), status=refusal.status) if refusal else response


@require_POST
@staff_view(*DECIDING_ROLES)
def _add_browser(request: StaffRequest) -> HttpResponseBase:
    said = {name: request.POST.get(name, "") for name in ("endpoint", "p256dh", "auth")}
    alerts.subscribe(request.member.user, browser=_browser(request.headers.get("User-Agent", "")), **said)
    return JsonResponse({"subscribed": True})


@require_POST
@staff_view(*DECIDING_ROLES)
def remove_browser(request: StaffRequest, subscription_id: UUID) -> HttpResponseBase:
    alerts.unsubscribe(subscription_id, user=request.member.user)
    return redirect("console-alerts")


def _page(request: StaffRequest, form: AlertForm, *, status: int = 200) -> HttpResponseBase:
    shown: dict[str, Any] = {
        "form": form,
        "browsers": alerts.push_subscriptions(request.member.user),
        "key": webpush.public_key() if settings.SILAS_SECRETS_KEY else "",
        "letters": bool(settings.EMAIL_HOST),
    }
    return page(request, "console/alerts.html", at="account", status=status, **shown)


def _browser(agent: str) -> str:
    """What a person would call it: "Firefox, Linux"."""
    name = next((one for one in _NAMES if one in agent), "Browser")
    system = next((one for one in _SYSTEMS if one in agent), "")
    return ", ".join(filter(None, (_SHOWN.get(name, name), system)))
