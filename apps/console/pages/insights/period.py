"""The period and chatbot of the insights page, read from its address: a number of days, or two dates."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from urllib.parse import urlencode
from uuid import UUID
from zoneinfo import ZoneInfo

from django.utils.translation import gettext_lazy

from apps.tenants.models import Deployment
from kernel.timezones import first_known_timezone

SPANS = (("7", gettext_lazy("7 days")), ("30", gettext_lazy("30 days")), ("90", gettext_lazy("90 days")))
MAX_DAYS = 366


@dataclass(frozen=True)
class Period:
    """`first` and `last` are days in the time zone, both included; `days` is empty if the address has dates."""

    first: date
    last: date
    days: str
    zone: str
    now: datetime
    deployment: Deployment | None = None

    @property
    def since(self) -> datetime:
        return datetime.combine(self.first, time(), ZoneInfo(self.zone))

    @property
    def until(self) -> datetime:
        """The end of the last day, or now if that comes first."""
        return min(self.now, datetime.combine(self.last + timedelta(days=1), time(), ZoneInfo(self.zone)))

    @property
    def length(self) -> int:
        return (self.last - self.first).days + 1

    @property
    def deployment_id(self) -> UUID | None:
        return self.deployment.pk if self.deployment else None

    @property
    def address(self) -> str:
        """The query string of this period."""
        dates = {"days": self.days} if self.days else {"from": self.first.isoformat(), "to": self.last.isoformat()}
        return urlencode(dates | ({"chatbot": str(self.deployment.pk)} if self.deployment else {}))


def period_from(parameters: Mapping[str, str], *, zone: str, moment: datetime, deployments: list[Deployment]) -> Period:
    """Read the period; invalid parameters mean the last week of all chatbots."""
    zone = first_known_timezone(zone)
    today = moment.astimezone(ZoneInfo(zone)).date()
    chosen = next(
        (deployment for deployment in deployments if str(deployment.pk) == parameters.get("chatbot", "")), None
    )
    first, last = _date(parameters.get("from", "")), _date(parameters.get("to", ""))
    last = min(last, today) if last else today
    if first and first <= last and (last - first).days < MAX_DAYS:
        return Period(first, last, "", zone, moment, chosen)
    days = parameters.get("days", "")
    days = days if days in dict(SPANS) else SPANS[0][0]
    return Period(today - timedelta(days=int(days) - 1), today, days, zone, moment, chosen)


def _date(text: str) -> date | None:
    try:
        day = date.fromisoformat(text)
    except ValueError:
        return None
    return day if day.year >= 2000 else None
