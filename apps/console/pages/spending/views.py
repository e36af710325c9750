"""Spending: limits, running work, and costs by day, chatbot, model and purpose; and the company's own prices of models.

Owners and approvers see what was spent. Owners resume work that a limit paused, and set prices, the limits of the
company and of chatbots, and what happens at a limit.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal
from uuid import UUID

from django.http.response import HttpResponseBase
from django.shortcuts import redirect
from django.urls import reverse
from django.utils import timezone
from django.utils.formats import date_format
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext, pgettext_lazy
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from apps.console.base import page
from apps.console.charts import columns
from apps.console.members import DECIDING_ROLES, StaffRequest, staff_view
from apps.console.names import Names, names_for
from apps.console.pages.spending.forms import LimitForm, PolicyForm, PriceForm, amounts_in_fields, price_in_fields
from apps.console.templatetags.console import usd
from apps.guard import queries, services
from apps.guard.enums import Holder, OnLimit, Origin, Period
from apps.guard.models import GuardedRun, ModelPrice, SpendingPolicy
from apps.guard.schemas import ZERO, BudgetFacts
from apps.tenants.enums import Role
from apps.tenants.models import Deployment
from llm.pricing import RATE_FIELDS

SPANS = (7, 30, 90)
_RUNNING = 20
_PERIODS = {Period.DAY: gettext_lazy("today"), Period.MONTH: gettext_lazy("this month")}
_PURPOSES = {
    "proxy": gettext_lazy("answering visitors"),
    "planner": gettext_lazy("planning"),
    "executor": gettext_lazy("executing"),
    "researcher": gettext_lazy("research"),
    "scorer": gettext_lazy("shortening conversations"),
    "gate": pgettext_lazy("purpose of spending", "gates"),
}
_WORK = {
    Origin.CHAT: gettext_lazy("A conversation"),
    Origin.WORK: gettext_lazy("Approved work"),
    Origin.BACKGROUND: gettext_lazy("Automation run"),
}
_PAGES = {Origin.CHAT: "console-conversation", Origin.WORK: "console-work-item", Origin.BACKGROUND: "console-run"}


@dataclass(frozen=True)
class Row:
    """One row of a table of costs; `share` is relative to the highest, for its bar."""

    name: str
    amount: Decimal
    share: float


@dataclass(frozen=True)
class Running:
    """A run in progress with what it has used of its cap."""

    name: str
    address: str
    used: Decimal
    cap: Decimal
    run: GuardedRun

    @property
    def share(self) -> float:
        return float(self.used / self.cap) if self.cap else 1.0


@require_safe
@staff_view(*DECIDING_ROLES)
def spending_page(request: StaffRequest) -> HttpResponseBase:
    return _render(request)


@require_POST
@staff_view(Role.OWNER)
def save_limit(request: StaffRequest) -> HttpResponseBase:
    """Set what the company or a chatbot may spend a day or a month."""
    form = LimitForm(request.POST)
    if not form.is_valid():
        return _render(request, form)
    user = request.member.user
    services.set_budget(**form.values, actor=user.actor, user=user)
    return redirect("console-spending")


@require_POST
@staff_view(Role.OWNER)
def remove_limit(request: StaffRequest, budget_id: UUID) -> HttpResponseBase:
    user = request.member.user
    services.remove_budget(budget_id, actor=user.actor, user=user)
    return redirect("console-spending")


def _render(request: StaffRequest, form: LimitForm | None = None) -> HttpResponseBase:
    days = next((span for span in SPANS if str(span) == request.GET.get("days")), SPANS[0])
    today = timezone.localdate()
    since = today - timedelta(days=days - 1)
    titles = {deployment.pk: deployment.title for deployment in Deployment.objects.all()}
    lines, running = queries.budget_lines(today), queries.running_with_a_cap(_RUNNING)
    names = _names(lines, running)
    policy = SpendingPolicy.objects.first()
    daily = [(date_format(day, "j M"), amount) for day, amount in queries.spent_by_day(since, today)]
    amounts = [float(amount) for _, amount in daily]
    chart = columns([name for name, _ in daily], amounts, least=min(max(amounts), 1.0) or 1.0, text_of=usd)
    context: dict[str, object] = {
        "days": days,
        "spans": [(span, ngettext("%(number)s day", "%(number)s days", span) % {"number": span}) for span in SPANS],
        "lines": [(_whose(line, titles, names), _PERIODS[Period(line.period)], line) for line in lines],
        "paused": any(line.is_paused for line in lines),
        "on_limit": OnLimit(policy.on_limit if policy else OnLimit.PAUSE_ALL),
        "running": [_running(run, names) for run in running],
        "daily": daily,
        "chart": chart,
        "total": sum((amount for _, amount in daily), ZERO),
        "tables": _tables(since, titles),
        "form": form or LimitForm(),
    }
    return page(request, "console/spending.html", at="spending", status=422 if form else 200, **context)


@require_POST
@staff_view(Role.OWNER)
def resume(request: StaffRequest) -> HttpResponseBase:
    services.resume_spending(actor=f"user:{request.member.user.pk}")
    return redirect("console-spending")


@require_http_methods(["GET", "HEAD", "POST"])
@staff_view(Role.OWNER)
def spending_policy(request: StaffRequest) -> HttpResponseBase:
    """What happens at a limit, what a visitor may cost a day, and the price of models that no list knows."""
    form = PolicyForm(
        request.POST if request.method == "POST" else None, initial=amounts_in_fields(services.spending_policy())
    )
    if request.method == "POST" and form.is_valid():
        user = request.member.user
        services.change_spending_policy(form.cleaned_data, actor=user.actor, user=user)
        return redirect("console-spending-policy")
    return page(request, "console/spending_policy.html", at="spending", status=422 if form.errors else 200, form=form)


@require_http_methods(["GET", "HEAD", "POST"])
@staff_view(Role.OWNER)
def prices(request: StaffRequest) -> HttpResponseBase:
    """The company's own prices of models; with `model` the form is filled with the price of that one."""
    rows = list(ModelPrice.objects.order_by("model"))
    if request.method == "POST":
        form = PriceForm(request.POST)
        if form.is_valid():
            user = request.member.user
            services.set_price(form.cleaned_data["model"], form.rates, actor=user.actor, user=user)
            return redirect("console-prices")
    else:
        asked = request.GET.get("model", "")
        chosen = next((row for row in rows if row.model == asked), None)
        form = PriceForm(initial=price_in_fields(chosen) if chosen else {"model": asked[:120]})
    return page(
        request,
        "console/prices.html",
        at="spending",
        status=422 if form.errors else 200,
        rows=[(row, [getattr(row, name) for name in RATE_FIELDS]) for row in rows],
        form=form,
    )


@require_POST
@staff_view(Role.OWNER)
def remove_price(request: StaffRequest, price_id: UUID) -> HttpResponseBase:
    user = request.member.user
    services.remove_price(price_id, actor=user.actor, user=user)
    return redirect("console-prices")


def _tables(since: date, titles: dict[UUID, str]) -> list[tuple[str, str, list[Row]]]:
    """Return the tables as (dimension, heading, rows)."""
    purposes = [
        (str(_PURPOSES.get(name) or name or _("other")), amount) for name, amount in queries.spent_by("purpose", since)
    ]
    chatbots = [(titles.get(key, _("no chatbot")), amount) for key, amount in queries.spent_by("deployment_id", since)]
    models = [(name or _("no model"), amount) for name, amount in queries.spent_by("model", since)]
    return [
        ("chatbot", _("By chatbot"), _rows(chatbots)),
        ("model", _("By model"), _rows(models)),
        ("purpose", _("By purpose"), _rows(purposes)),
    ]


def _rows(amounts: list[tuple[str, Decimal]]) -> list[Row]:
    highest = max((amount for _, amount in amounts), default=ZERO)
    return [Row(name, amount, float(amount / highest) if highest else 0.0) for name, amount in amounts]


def _names(lines: list[BudgetFacts], running: list[GuardedRun]) -> Names:
    """Return the names of the automations on the page."""
    unattended = [_session(run) for run in running if run.origin == Origin.BACKGROUND]
    return names_for([*(f"task:{line.ref}" for line in lines if line.holder == Holder.TASK), *unattended])


def _session(run: GuardedRun) -> str:
    return f"autonomous:{run.owner_ref}"


def _whose(line: BudgetFacts, titles: dict[UUID, str], names: Names) -> str:
    match Holder(line.holder):
        case Holder.DEPLOYMENT:
            return titles.get(line.ref, _("a chatbot"))
        case Holder.TASK:
            return names.known.get(f"task:{line.ref}", _("One automation"))
        case _:
            return _("The company")


def _running(run: GuardedRun, names: Names) -> Running:
    origin = Origin(run.origin)
    named = names.known.get(_session(run), "") if origin is Origin.BACKGROUND else str(_WORK[origin])
    address = reverse(_PAGES[origin], args=[run.owner_ref]) if named else ""
    cap = run.frozen_limits.cost_usd or ZERO
    return Running(named or str(_WORK[origin]), address, run.cost_total + run.cost_reserved, cap, run)
