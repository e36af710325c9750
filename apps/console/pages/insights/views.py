"""Insights: figures about conversations and about decisions (the metrics of spec 0.5.6 with their targets).

Shown as charts and tables, and as a CSV file.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.http.response import HttpResponseBase
from django.utils.formats import number_format
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_safe

from apps.approvals.cards import metrics
from apps.approvals.cards.metrics import Totals
from apps.approvals.enums import Risk
from apps.console.base import page
from apps.console.charts import columns
from apps.console.csv_response import csv_response
from apps.console.labels import inline_label
from apps.console.members import StaffRequest, staff_view
from apps.console.pages.insights import presenter
from apps.console.pages.insights.period import SPANS, Period, period_from
from apps.console.templatetags.console import percent, seconds
from apps.inbox.insights import DecisionFigures, figures_of
from apps.tenants.models import Deployment
from kernel.clock import now

# With fewer decisions, shares are not compared with their targets.
FEW_DECISIONS = 10
_SPREAD = (
    gettext_lazy("under 1 s"),
    gettext_lazy("1 to 5 s"),
    gettext_lazy("5 to 15 s"),
    gettext_lazy("15 to 30 s"),
    gettext_lazy("30 s or more"),
)


@dataclass(frozen=True)
class Figure:
    """One metric with its target; `state` is `ok`, `bad` or empty, `hint` says what a miss means."""

    title: str
    value: str
    target: str
    state: str = ""
    hint: str = ""


@require_safe
@staff_view()
def insights(request: StaffRequest) -> HttpResponseBase:
    deployments = list(Deployment.objects.order_by("title"))
    period = _period(request, deployments)
    figures, decisions = figures_of(period)
    totals, rungs = decisions.totals, decisions.by_risk
    context = {
        "period": period,
        "days": period.days,
        "spans": SPANS,
        "deployments": deployments,
        "conversation_figures": figures,
        "tiles": presenter.tiles(figures),
        "talks": presenter.daily_chart(figures),
        "talks_daily": [(presenter.day_name(day.day), day) for day in figures.daily],
        "reasons": presenter.reasons(figures),
        "totals": totals,
        "rungs": [(inline_label(Risk(row.risk).label), row) for row in rungs],
        "figures": [*_times(rungs), *_figures(totals, period.length)],
        "families": decisions.by_action,
        **_decision_charts(decisions),
    }
    return page(request, "console/insights.html", at="insights", **context)


@require_safe
@staff_view()
def insights_file(request: StaffRequest) -> HttpResponseBase:
    """Return all numbers as a CSV file."""
    period = _period(request, list(Deployment.objects.order_by("title")))
    figures, decisions = figures_of(period)
    rows = [*presenter.rows(figures), *_decisions(decisions)]
    name = f"insights-{period.first.isoformat()}-{period.last.isoformat()}"
    return csv_response(name, ("section", "name", "value"), rows)


def _decisions(figures: DecisionFigures) -> list[tuple[str, str, object]]:
    names = ("decisions", "median", "declined", "undone", "corrected", "freetext", "expired", "withdrawn")
    return [
        *(("Decisions", name, getattr(figures.totals, name)) for name in names),
        *(("Decisions a day", day.day.isoformat(), day.decided) for day in figures.daily),
        *(("Decisions by risk", row.risk, row.decisions) for row in figures.by_risk),
        *(("Approval rate by risk", row.risk, row.approved) for row in figures.by_risk),
        *(("Corrected by action", row.name, row.rate) for row in figures.by_action),
    ]


def _period(request: StaffRequest, deployments: list[Deployment]) -> Period:
    zone = request.member.tenant.timezone
    return period_from(request.GET.dict(), zone=zone, moment=now(), deployments=deployments)


def _decision_charts(figures: DecisionFigures) -> dict[str, Any]:
    names = [presenter.day_name(day.day) for day in figures.daily]
    ranges = [str(words) for words in _SPREAD]
    volume = columns(names, [day.decided for day in figures.daily], [day.declined for day in figures.daily])
    return {
        "daily": list(zip(names, figures.daily, strict=True)),
        "volume": volume,
        "spread": list(zip(ranges, figures.times, strict=True)),
        "spread_drawn": columns(ranges, figures.times),
        "timed": sum(figures.times),
    }


_TARGETS = {"low": (2.0, 5.0), "medium": (5.0, 15.0)}
_TIME_TITLES = {
    "low": gettext_lazy("Decision time, low risk"),
    "medium": gettext_lazy("Decision time, medium risk"),
    "high": gettext_lazy("Decision time, high risk"),
    "irreversible": gettext_lazy("Decision time, irreversible risk"),
}


def _times(rungs: list[metrics.RiskStats]) -> list[Figure]:
    known = {rung.risk: rung.median for rung in rungs}
    return [
        _time(str(title), known.get(name), aim=_TARGETS.get(name))
        for name, title in _TIME_TITLES.items()
        if name in _TARGETS or name in known
    ]


def _time(title: str, median: float | None, *, aim: tuple[float, float] | None) -> Figure:
    target = _("{least:.0f} to {most:.0f} s").format(least=aim[0], most=aim[1]) if aim else _("no target")
    if median is None:
        return Figure(title, _("none yet"), target)
    if median < metrics.HASTY_SECONDS:
        return Figure(title, seconds(median), target, "bad", _("Less than a second suggests habit."))
    if median > 30:
        return Figure(title, seconds(median), target, "bad", _("More than 30 seconds suggests that cards are unclear."))
    return Figure(title, seconds(median), target, "ok" if aim and aim[0] <= median <= aim[1] else "")


def _figures(totals: Totals, days: int) -> list[Figure]:
    few = totals.decisions < FEW_DECISIONS
    return [
        _share(_("Declined"), totals.declined, _("5 to 15\N{NO-BREAK SPACE}%"), _DECLINED, low=0.02, few=few),
        _share(_("Undone"), totals.undone, _("under 10\N{NO-BREAK SPACE}%"), _UNDONE, few=few),
        _share(_("Corrected"), totals.corrected, _("under 10\N{NO-BREAK SPACE}%"), _CORRECTED, few=few),
        _share(_("With free text"), totals.freetext, _("under 20\N{NO-BREAK SPACE}%"), _WORDED, few=few),
        _taps(totals.taps_per_batch),
        _fatigue(totals.fatigue_triggers, days),
    ]


# The share from which a metric is off target, and the hint for it.
_DECLINED = (0.30, gettext_lazy("Many requests are declined."))
_UNDONE = (0.10, gettext_lazy("Changes are often undone."))
_CORRECTED = (0.10, gettext_lazy("Improve the proposals before giving the bot more freedom."))
_WORDED = (0.20, gettext_lazy("The offered answers often don't fit."))


def _taps(taps: float | None) -> Figure:
    if taps is None:
        return Figure(_("Taps per batch"), _("none yet"), _("3 at most"))
    return Figure(
        _("Taps per batch"),
        number_format(taps, 1),
        _("3 at most"),
        *(("ok",) if taps <= 3 else ("bad", _("More is friction."))),
    )


def _fatigue(triggers: int, days: int) -> Figure:
    few = triggers * 7 < days
    hint = "" if few else _("Too many approvals: consider standing approvals for recurring work.")
    return Figure(_("Approval fatigue"), str(triggers), _("under 1 per week"), "ok" if few else "bad", hint)


def _share(
    title: str,
    share: float | None,
    target: str,
    miss: tuple[float, str | Promise],
    *,
    low: float = 0.0,
    few: bool = False,
) -> Figure:
    if share is None:
        return Figure(title, _("none yet"), target)
    if few:
        return Figure(title, percent(share), _("{target}; too few decisions").format(target=target))
    if share < low:
        return Figure(title, percent(share), target, "bad", _("Almost nothing is declined. Check that cards are read."))
    return Figure(title, percent(share), target, *(("bad", str(miss[1])) if share > miss[0] else ("ok",)))
