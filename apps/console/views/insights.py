"""How well do people and cards get on? The metrics of spec 0.5.6 with their targets, drawn and as tables."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.http.response import HttpResponseBase
from django.utils import timezone
from django.views.decorators.http import require_safe

from apps.approvals import metrics
from apps.approvals.metrics import Totals
from apps.console.charts import columns
from apps.console.members import StaffRequest, staff_view
from apps.console.templatetags.console import percent, seconds
from apps.console.views.pages import page
from kernel.clock import now
from kernel.zones import known

SPANS = (("7", "7 days"), ("30", "30 days"), ("90", "90 days"))
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
    span = request.GET.get("days", "7")
    days = int(span) if span in dict(SPANS) else 7
    until = now()
    since = _begin(until, days)
    zone = known(request.member.tenant.timezone)
    found, rungs = metrics.totals(since), metrics.by_risk(since)
    shown = {
        "days": str(days),
        "spans": SPANS,
        "totals": found,
        "figures": [*_times(rungs), *_figures(found, days)],
        "families": metrics.by_family(since),
        **_drawings(since, until, zone),
    }
    return page(request, "console/insights.html", at="insights", **shown)


def _begin(until: datetime, days: int) -> datetime:
    """Midnight of the first of so many days, in the tenant's time zone."""
    today = timezone.localtime(until).replace(hour=0, minute=0, second=0, microsecond=0)
    return today - timedelta(days=days - 1)


def _drawings(since: datetime, until: datetime, zone: str) -> dict[str, Any]:
    daily = metrics.by_day(since, until, zone=zone)
    names = [f"{one.day.day} {one.day:%b}" for one in daily]
    spread = metrics.spread(since)
    volume = columns(names, [one.decided for one in daily], [one.declined for one in daily])
    return {
        "daily": list(zip(names, daily, strict=True)),
        "volume": volume,
        "spread": list(zip(_SPREAD, spread, strict=True)),
        "spread_drawn": columns(_SPREAD, spread),
        "timed": sum(spread),
    }


_AIMS = {"low": (2.0, 5.0), "medium": (5.0, 15.0)}


def _times(rungs: list[metrics.Rung]) -> list[Figure]:
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
