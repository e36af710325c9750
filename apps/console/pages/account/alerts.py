"""Alerts: how a member is told about new cards while away, by push or email; what an open console rings for and shows
on the desktop; and quiet hours for all of it."""

from __future__ import annotations

from uuid import UUID

from django import forms
from django.conf import settings
from django.http import HttpRequest, JsonResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect
from django.utils.dates import WEEKDAYS
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_POST, require_safe

from apps.approvals.cards import alerts, webpush
from apps.approvals.cards.quiet_hours import EVERY_DAY, QuietHours
from apps.approvals.enums import AlertWay
from apps.approvals.models import AlertChoice
from apps.approvals.models.alerts import MAX_MINUTES, MIN_MINUTES
from apps.console.base import page
from apps.console.members import DECIDING_ROLES, StaffRequest, staff_view
from apps.tenants.enums import Capability
from kernel.errors import SilasError

_NAMES = ("Edg", "OPR", "Firefox", "Chrome", "Safari")
_SHOWN = {"Edg": "Edge", "OPR": "Opera"}
_TIME = forms.TimeInput(attrs={"type": "time"}, format="%H:%M")
_SYSTEMS = ("Android", "iPhone", "iPad", "Windows", "Mac OS", "Linux")


class AlertForm(forms.Form):
    way = forms.ChoiceField(label=gettext_lazy("Alert me"), choices=AlertWay.choices)
    minutes = forms.IntegerField(
        label=gettext_lazy("Email delay in minutes"),
        min_value=MIN_MINUTES,
        max_value=MAX_MINUTES,
        help_text=gettext_lazy("Sent if you haven't viewed the card by then. At most one email every ten minutes."),
    )


class NoticeForm(forms.Form):
    sound = forms.BooleanField(label=gettext_lazy("Play a sound"), required=False)
    desktop = forms.BooleanField(label=gettext_lazy("Show desktop notifications"), required=False)
    start = forms.TimeField(label=gettext_lazy("Quiet from"), required=False, widget=_TIME)
    end = forms.TimeField(label=gettext_lazy("Quiet until"), required=False, widget=_TIME)
    days = forms.TypedMultipleChoiceField(
        label=gettext_lazy("Days"),
        required=False,
        coerce=int,
        choices=list(WEEKDAYS.items()),
        widget=forms.CheckboxSelectMultiple,
    )

    def clean(self) -> dict[str, object]:
        cleaned = super().clean() or self.cleaned_data
        start, end = cleaned.get("start"), cleaned.get("end")
        if (start is None) != (end is None) and not {"start", "end"} & self.errors.keys():
            self.add_error("end" if end is None else "start", _("Enter both times, or neither for no quiet hours."))
        if start is not None and end is not None and not cleaned.get("days") and "days" not in self.errors:
            self.add_error("days", _("Choose at least one day."))
        return cleaned

    @property
    def notice_fields(self) -> list[forms.BoundField]:
        return [self["sound"], self["desktop"]]

    @property
    def quiet_fields(self) -> list[forms.BoundField]:
        return [self["start"], self["end"], self["days"]]

    @property
    def quiet_hours(self) -> QuietHours | None:
        """The quiet hours of a valid form; None if both times are empty."""
        values = self.cleaned_data
        if values["start"] is None:
            return None
        return QuietHours(values["start"], values["end"], frozenset(values["days"]))


@require_safe
@staff_view(Capability.ANSWER)
def alerts_page(request: StaffRequest) -> HttpResponseBase:
    return _page(request)


@require_POST
@staff_view(Capability.ANSWER)
def choose_notices(request: StaffRequest) -> HttpResponseBase:
    form = NoticeForm(request.POST)
    if not form.is_valid():
        return _page(request, notice_form=form, status=400)
    alerts.set_notice_choice(
        request.member.user,
        sound=form.cleaned_data["sound"],
        desktop=form.cleaned_data["desktop"],
        quiet_hours=form.quiet_hours,
    )
    return redirect("console-alerts")


@require_POST
@staff_view(*DECIDING_ROLES)
def choose(request: StaffRequest) -> HttpResponseBase:
    form = AlertForm(request.POST)
    if not form.is_valid():
        return _page(request, form=form, status=400)
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


def _page(
    request: StaffRequest, *, form: AlertForm | None = None, notice_form: NoticeForm | None = None, status: int = 200
) -> HttpResponseBase:
    choice = alerts.alert_choice(request.member.user)
    context: dict[str, object] = {
        "form": form or AlertForm(initial=_alerts_in(choice)),
        "notice_form": notice_form or NoticeForm(initial=_notices_in(choice)),
        "zone": request.member.tenant.timezone,
        "browsers": alerts.push_subscriptions(request.member.user),
        "key": webpush.public_key() if settings.SILAS_SECRETS_KEY else "",
        "has_email": bool(settings.EMAIL_HOST),
    }
    return page(request, "console/alerts.html", at="account", status=status, **context)


def _alerts_in(choice: AlertChoice | None) -> dict[str, object]:
    return {"way": choice.way, "minutes": choice.minutes} if choice else {"way": AlertWay.OFF, "minutes": 10}


def _notices_in(choice: AlertChoice | None) -> dict[str, object]:
    if choice is None:
        return {"days": list(EVERY_DAY)}
    quiet = QuietHours.from_json(choice.quiet_hours) if choice.quiet_hours else None
    return {
        "sound": choice.sound,
        "desktop": choice.desktop,
        "start": quiet.start if quiet else None,
        "end": quiet.end if quiet else None,
        "days": sorted(quiet.days if quiet else EVERY_DAY),
    }


def _browser(agent: str) -> str:
    """Return the browser and system of a user agent, such as `Firefox, Linux`."""
    name = next((name for name in _NAMES if name in agent), _("Browser"))
    system = next((system for system in _SYSTEMS if system in agent), "")
    return ", ".join(filter(None, (_SHOWN.get(name, name), system)))
