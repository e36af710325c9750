"""How do conversations go, and how well do people and cards get on? Figures of the first; the metrics of spec 0.5.6
with their targets. Drawn, as tables, and as a file."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from typing import Any

from django.http import HttpResponse
from django.http.response import HttpResponseBase
from django.views.decorators.http import require_safe

from apps.approvals import metrics
from apps.approvals.metrics import Totals
from apps.console import conversing
from apps.console.charts import columns
from apps.console.members import StaffRequest, staff_view
from apps.console.period import SPANS, Period, period_of
from apps.console.templatetags.console import percent, seconds
from apps.console.views.pages import page
from apps.tenants.models import Deployment
from kernel.clock import now

# Of fewer decisions a share says nothing yet.
FEW = 10
_SPREAD = ("under 1 s", "1 to 5 s", "5 to 15 s", "15 to 30 s", "30 s or more")


@dataclass(frozen=True)
class Figure:
    """One metric: what it is, how it stands beside its target, and what a miss would mean."""

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
    found = conversing.conversing(period)
    asked = (period.since, period.until, period.deployment_id)
    totals, rungs = metrics.totals(*asked), metrics.by_risk(*asked)
    shown = {
        "period": period,
        "days": period.days,
        "spans": SPANS,
        "deployments": deployments,
        "found": found,
        "tiles": conversing.tiles(found),
        "talks": conversing.drawn(found),
        "talks_daily": [(conversing.day_name(one.day), one) for one in found.daily],
        "reasons": conversing.reasons(found),
        "totals": totals,
        "rungs": rungs,
        "figures": [*_times(rungs), *_figures(totals, period.length)],
        "families": metrics.by_family(*asked),
        **_drawings(period),
    }
    return page(request, "console/insights.html", at="insights", **shown)


@require_safe
@staff_view()
def insights_file(request: StaffRequest) -> HttpResponseBase:
    """The same numbers as a table that a spreadsheet opens."""
    period = _period(request, list(Deployment.objects.order_by("title")))
    response = HttpResponse(content_type="text/csv; charset=utf-8")
    name = f"insights-{period.first.isoformat()}-{period.last.isoformat()}.csv"
    response["Content-Disposition"] = f'attachment; filename="{name}"'
    response["Cache-Control"] = "private, no-store"
    lines = csv.writer(response)
    lines.writerow(("section", "name", "value"))
    lines.writerows([_harmless(cell) for cell in row] for row in [*_talks(period), *_decisions(period)])
    return response


def _talks(period: Period) -> list[tuple[str, str, object]]:
    return conversing.rows(conversing.conversing(period))


def _decisions(period: Period) -> list[tuple[str, str, object]]:
    asked = (period.since, period.until, period.deployment_id)
    daily = metrics.by_day(*asked[:2], zone=period.zone, deployment=period.deployment_id)
    names = ("decisions", "median", "declined", "undone", "corrected", "freetext", "expired", "withdrawn")
    totals = metrics.totals(*asked)
    return [
        *(("Decisions", name, getattr(totals, name)) for name in names),
        *(("Decisions a day", one.day.isoformat(), one.decided) for one in daily),
        *(("Decisions by risk", one.risk, one.decisions) for one in metrics.by_risk(*asked)),
        *(("Approval rate by risk", one.risk, one.approved) for one in metrics.by_risk(*asked)),
        *(("Corrected by action", one.name, one.rate) for one in metrics.by_family(*asked)),
    ]


def _harmless(cell: object) -> object:
    """What a spreadsheet would take for a formula is text."""
    return f"'{cell}" if isinstance(cell, str) and cell.startswith(("=", "+", "-", "@", "\t", "\r")) else cell


def _period(request: StaffRequest, deployments: list[Deployment]) -> Period:
    zone = request.member.tenant.timezone
    return period_of(request.GET.dict(), zone=zone, moment=now(), deployments=deployments)


def _drawings(period: Period) -> dict[str, Any]:
    asked = (period.since, period.until, period.deployment_id)
    daily = metrics.by_day(*asked[:2], zone=period.zone, deployment=period.deployment_id)
    names = [conversing.day_name(one.day) for one in daily]
    spread = metrics.decision_time_histogram(*asked)
    volume = columns(names, [one.decided for one in daily], [one.declined for one in daily])
    return {
        "daily": list(zip(names, daily, strict=True)),
        "volume": volume,
        "spread": list(zip(_SPREAD, spread, strict=True)),
        "spread_drawn": columns(_SPREAD, spread),
        "timed": sum(spread),
    }


_AIMS = {"low": (2.0, 5.0), "medium": (5.0, 15.0)}


def _times(rungs: list[metrics.RiskStats]) -> list[Figure]:
    known = {rung.risk: rung.median for rung in rungs}
    return [
        _time(f"Decision time, {name} risk", known.get(name), aim=_AIMS.get(name))
        for name in ("low", "medium", "high", "irreversible")
        if name in _AIMS or name in known
    ]


def _time(title: str, median: float | None, *, aim: tuple[float, float] | None) -> Figure:
    target = f"{aim[0]:.0f} to {aim[1]:.0f} s" if aim else "no target"
    if median is None:
        return Figure(title, "none yet", target)
    if median < metrics.HASTY_SECONDS:
        return Figure(title, seconds(median), target, "bad", "Under a second looks like habit.")
    if median > 30:
        return Figure(title, seconds(median), target, "bad", "Over 30 seconds, cards may be hard to understand.")
    return Figure(title, seconds(median), target, "ok" if aim and aim[0] <= median <= aim[1] else "")


def _figures(found: Totals, days: int) -> list[Figure]:
    few = found.decisions < FEW
    return [
        _share("Declined", found.declined, "5 to 15\N{NO-BREAK SPACE}%", _DECLINED, low=0.02, few=few),
        _share("Undone", found.undone, "under 10\N{NO-BREAK SPACE}%", _UNDONE, few=few),
        _share("Corrected", found.corrected, "under 10\N{NO-BREAK SPACE}%", _CORRECTED, few=few),
        _share("With free text", found.freetext, "under 20\N{NO-BREAK SPACE}%", _WORDED, few=few),
        _taps(found.taps_per_batch),
        _fatigue(found.fatigue_triggers, days),
    ]


# From which share on a number is a miss, and what that would mean.
_DECLINED = (0.30, "Many proposals are not wanted.")
_UNDONE = (0.10, "What runs is often taken back.")
_CORRECTED = (0.10, "Proposals need care before they need freedom.")
_WORDED = (0.20, "The offered answers do not fit often enough.")


def _taps(taps: float | None) -> Figure:
    if taps is None:
        return Figure("Taps a batch", "none yet", "3 at most")
    return Figure("Taps a batch", f"{taps:.1f}", "3 at most", *(("ok",) if taps <= 3 else ("bad", "More is friction.")))


def _fatigue(triggers: int, days: int) -> Figure:
    few = triggers * 7 < days
    hint = "" if few else "People approve too much: let recurring work stand."
    return Figure("Signs of fatigue", str(triggers), "under 1 a week", "ok" if few else "bad", hint)


def _share(
    title: str, share: float | None, target: str, miss: tuple[float, str], *, low: float = 0.0, few: bool = False
) -> Figure:
    if share is None:
        return Figure(title, "none yet", target)
    if few:
        return Figure(title, percent(share), f"{target}; too few decisions to say")
    if share < low:
        return Figure(title, percent(share), target, "bad", "Hardly anything is declined: is it read?")
    return Figure(title, percent(share), target, *(("bad", miss[1]) if share > miss[0] else ("ok",)))
