"""Is what somebody typed a time zone, and does a row that holds none still tell the time?"""

from __future__ import annotations

from typing import Any

import pytest
from django.core.exceptions import ValidationError

from kernel import timezones

NONE = ["Europe/Atlantis", "../etc/passwd", "/etc/localtime", "Europe", "Mars", "x" * 300, "a\0b", "localtime", 5]


@pytest.mark.parametrize("zone", NONE)
def test_what_is_no_zone_is_told_and_a_row_that_holds_it_tells_the_time_of_utc(zone: Any) -> None:
    assert "is not a time zone" in timezones.timezone_error(zone)
    assert timezones.get_timezone(zone).key == "UTC"


@pytest.mark.parametrize("zone", ["Europe/London", "UTC", "America/Argentina/Buenos_Aires", "Etc/GMT+3"])
def test_zone_is_taken(zone: str) -> None:
    assert timezones.timezone_error(zone) == ""


def test_first_that_is_known_counts() -> None:
    assert timezones.first_known_timezone("Mars", "", "Europe/Berlin", "Europe/London") == "Europe/Berlin"


def test_field_refuses_it_with_a_code() -> None:
    with pytest.raises(ValidationError) as refusal:
        timezones.validate_timezone("Mars")
    assert refusal.value.code == "unknown_timezone"
