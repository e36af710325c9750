"""Which time and which chatbot does a page of figures speak of? As its address says: days back, or from and to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from typing import Any
from urllib.parse import urlencode
from uuid import UUID
from zoneinfo import ZoneInfo

from kernel.timezones import first_known_timezone

SPANS = (("7", "7 days"), ("30", "30 days"), ("90", "90 days"))
LONGEST_DAYS = 366


@dataclass(frozen=True)
class Period:
    """`first` and `last` are days of the zone, both included; `days` is "" where the address named dates."""

    first: date
    last: date
    days: str
    zone: str
    now: datetime
    deployment: Any = None

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
        """The page's query that says the same."""
        dates = {"days": self.days} if self.days else {"from": self.first.isoformat(), "to": self.last.isoformat()}
        return urlencode(dates | ({"chatbot": str(self.deployment.pk)} if self.deployment else {}))


def period_of(asked: Mapping[str, str], *, zone: str, moment: datetime, deployments: list[Any]) -> Period:
    """What cannot be read, or makes no sense, is the last week of all chatbots."""
    zone = first_known_timezone(zone)
    today = moment.astimezone(ZoneInfo(zone)).date()
    chosen = next((one for one in deployments if str(one.pk) == asked.get("chatbot", "")), None)
    first, last = _date(asked.get("from", "")), _date(asked.get("to", ""))
    last = min(last, today) if last else today
    if first and first <= last and (last - first).days < LONGEST_DAYS:
        return Period(first, last, "", zone, moment, chosen)
    days = asked.get("days", "")
    days = days if days in dict(SPANS) else SPANS[0][0]
    return Period(today - timedelta(days=int(days) - 1), today, days, zone, moment, chosen)


def _date(text: str) -> date | None:
    try:
        found = date.fromisoformat(text)
    except ValueError:
        return None
    return found if found.year >= 2000 else None
