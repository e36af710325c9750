"""What did you do while I was away? Since the member's last visit, or since a moment that they choose."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.http.response import HttpResponseBase
from django.utils import timezone
from django.utils.dateparse import parse_datetime
from django.views.decorators.http import require_safe

from apps.console.members import StaffRequest, staff_view
from apps.console.missed import missed_by
from apps.console.views.pages import page
from apps.tenants.visits import last_visit_ended_at
from kernel.clock import now

SPANS = (("", "Last visit"), ("24h", "24 hours"), ("7d", "7 days"), ("30d", "30 days"))
_LONG = {"24h": timedelta(days=1), "7d": timedelta(days=7), "30d": timedelta(days=30)}
# Somebody who was never here before is told about the last day; nobody about more than a year.
_AT_FIRST, _MOST = timedelta(days=1), timedelta(days=366)


@require_safe
@staff_view()
def away(request: StaffRequest) -> HttpResponseBase:
    """`span`: one of the spans; `since`: a moment in the tenant's zone, which goes before it."""
    span, visited = request.GET.get("span", ""), last_visit_ended_at(request.member.user)
    chosen = _moment(request.GET.get("since", ""))
    known = span if span in _LONG else ""
    since = chosen or (now() - _LONG[known] if known else visited or now() - _AT_FIRST)
    return page(
        request,
        "console/away.html",
        at="activity",
        spans=SPANS,
        span="chosen" if chosen else known,
        since=since,
        visited=visited,
        parts=missed_by(request.member, since),
    )


def _moment(given: str) -> datetime | None:
    """A moment of the past year, or none."""
    try:
        found = parse_datetime(given)
        local = timezone.make_aware(found) if found and timezone.is_naive(found) else found
        return local if local and now() - _MOST <= local <= now() else None
    except (ValueError, OverflowError):
        return None
