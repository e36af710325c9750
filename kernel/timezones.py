"""Validate and look up time zone names.

Forms and model fields validate with `timezone_error`. Readers use `first_known_timezone`, because a stored name may be
older than the validation, or the machine's time zone database may differ.
"""

from __future__ import annotations

from functools import cache
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

from django.core.exceptions import ValidationError

from kernel.error_codes import ErrorCode
from kernel.language import gettext

UTC_NAME = "UTC"
# In the database of many machines, and another zone on each.
_OF_THIS_MACHINE = frozenset({"localtime", "Factory", "posixrules"})


def timezone_error(zone: object) -> str:
    """Why the name is invalid, or "". An empty name is valid here: the field decides whether one is required."""
    return (
        ""
        if zone in ("", None) or _is_known(zone)
        else gettext("{zone} is not a time zone. Use a name such as Europe/London.").format(zone=str(zone)[:60])
    )


def validate_timezone(zone: object) -> None:
    """For model fields. Raises Django's ValidationError, code `unknown_timezone`."""
    if problem := timezone_error(zone):
        raise ValidationError(problem, code=ErrorCode.UNKNOWN_TIMEZONE)


def first_known_timezone(*zones: str) -> str:
    """The first of these names that this machine knows, else UTC."""
    return next((zone for zone in zones if zone and _is_known(zone)), UTC_NAME)


@cache
def timezone_names() -> tuple[str, ...]:
    """The names to choose from: those of a place, such as Europe/London, and UTC."""
    areas = ("Africa", "America", "Antarctica", "Asia", "Atlantic", "Australia", "Europe", "Indian", "Pacific")
    return (UTC_NAME, *sorted(name for name in available_timezones() if name.partition("/")[0] in areas))


def get_timezone(*zones: str) -> ZoneInfo:
    return ZoneInfo(first_known_timezone(*zones))


def _is_known(zone: object) -> bool:
    try:
        ZoneInfo(str(zone))
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return False
    return str(zone) not in _OF_THIS_MACHINE
