"""The period and chatbot of the insights page, read from its address: a number of days, or two dates."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from urllib.parse import urlencode

from django.utils.translation import gettext_lazy

from apps.inbox import insights
from apps.inbox.insights import is_readable, today_in
from apps.tenants.models import Deployment
from kernel.timezones import first_known_timezone

SPANS = (("7", gettext_lazy("7 days")), ("30", gettext_lazy("30 days")), ("90", gettext_lazy("90 days")))


@dataclass(frozen=True)
class Period(insights.Period):
    """`days` is empty if the address has dates."""

    days: str = ""

    @property
    def address(self) -> str:
        """The query string of this period."""
        dates = {"days": self.days} if self.days else {"from": self.first.isoformat(), "to": self.last.isoformat()}
        return urlencode(dates | ({"chatbot": str(self.deployment.pk)} if self.deployment else {}))


def period_from(parameters: Mapping[str, str], *, zone: str, moment: datetime, deployments: list[Deployment]) -> Period:
    """Read the period; invalid parameters mean the last week of all chatbots."""
    zone = first_known_timezone(zone)
    today = today_in(zone, moment)
    chosen = next(
        (deployment for deployment in deployments if str(deployment.pk) == parameters.get("chatbot", "")), None
    )
    first, last = _date(parameters.get("from", "")), _date(parameters.get("to", ""))
    last = min(last, today) if last else today
    if first and is_readable(first, last):
        return Period(first, last, zone, moment, chosen)
    days = parameters.get("days", "")
    days = days if days in dict(SPANS) else SPANS[0][0]
    return Period(today - timedelta(days=int(days) - 1), today, zone, moment, chosen, days)


def _date(text: str) -> date | None:
    try:
        day = date.fromisoformat(text)
    except ValueError:
        return None
    return day if day.year >= 2000 else None
