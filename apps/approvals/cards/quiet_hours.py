"""Quiet hours of a member: when they get no alerts and hear nothing of the console. Pure.

The days are those on which the hours begin: hours that end at or before the time at which they begin end on the next
day. Times are those of the company's time zone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, time, timedelta
from typing import Any
from zoneinfo import ZoneInfo

EVERY_DAY = frozenset(range(7))


@dataclass(frozen=True)
class QuietHours:
    """`days` as `datetime.weekday()` counts them; Monday is 0."""

    start: time
    end: time
    days: frozenset[int] = EVERY_DAY

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> QuietHours:
        return cls(time.fromisoformat(stored["start"]), time.fromisoformat(stored["end"]), frozenset(stored["days"]))

    def as_json(self) -> dict[str, object]:
        return {"start": f"{self.start:%H:%M}", "end": f"{self.end:%H:%M}", "days": sorted(self.days)}

    def end_at(self, moment: datetime, zone: ZoneInfo) -> datetime | None:
        """When the quiet hours end in which `moment` is; None outside of them."""
        today = moment.astimezone(zone).date()
        ends = []
        for day in (today - timedelta(days=1), today):
            start = datetime.combine(day, self.start, zone)
            end = datetime.combine(day + timedelta(days=self.end <= self.start), self.end, zone)
            if day.weekday() in self.days and start <= moment < end:
                ends.append(end)
        return max(ends, default=None)
