"""When cron comes due: never, on 29 February, across a change of the clocks, on either of two days."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from kernel.errors import SilasError
from kernel.schedules import next_due


@pytest.mark.parametrize(
    "schedule",
    [
        "0 0 30 2 *",
        "0 0 31 4 *",
        "* * * *",
        "* * * * * *",
        "99 * * * *",
        "* * * * 8",
        "@daily",
        "",
        "a b c d e",
        "*/0 * * * *",
    ],
)
def test_schedule_that_never_comes_due_is_refused(schedule: str) -> None:
    with pytest.raises(SilasError) as refused:
        next_due(schedule, after=datetime(2026, 1, 1, tzinfo=UTC), zone="Europe/London")
    assert refused.value.code == "bad_schedule"


@pytest.mark.parametrize(
    ("schedule", "after", "due"),
    [
        pytest.param("0 0 29 2 *", "2026-03-01T00:00", "2028-02-29T00:00", id="leap day"),
        pytest.param("30 1 * * *", "2026-03-28T12:00", "2026-03-29T01:00", id="hour that is skipped"),
        pytest.param("30 1 * * *", "2026-10-25T00:00", "2026-10-25T00:30", id="hour that comes twice, first"),
        pytest.param("30 1 * * *", "2026-10-25T00:30", "2026-10-26T01:30", id="hour that comes twice, once only"),
        pytest.param("0 9 * * *", "2026-07-01T12:00", "2026-07-02T08:00", id="summer time"),
        pytest.param("0 0 13 * 5", "2026-02-01T00:00", "2026-02-06T00:00", id="either day matches"),
        pytest.param("0 0 * * 7", "2026-02-02T00:00", "2026-02-08T00:00", id="7 is Sunday"),
        pytest.param("0 9 * * *", "2026-02-01T09:00", "2026-02-02T09:00", id="strictly after"),
    ],
)
def test_schedule_is_read_in_the_tenants_time(schedule: str, after: str, due: str) -> None:
    found = next_due(schedule, after=datetime.fromisoformat(after).replace(tzinfo=UTC), zone="Europe/London")
    assert found == datetime.fromisoformat(due).replace(tzinfo=UTC)
