"""Rules about contacts: how identities are written, and what may be kept as an attribute. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import timedelta

MAX_NAME, MAX_VALUE, MAX_NOTE = 120, 254, 5000
MAX_ATTRIBUTES, MAX_ATTRIBUTE_NAME, MAX_ATTRIBUTE_VALUE = 50, 40, 500
MAX_IDENTITIES = 20
UNDO_FOR = timedelta(days=30)
# As a conversation keeps the customer that it was verified for.
MAX_CUSTOMER = 80
_EMAIL = re.compile(r"[^\s@<>\"]{1,64}@[^\s@<>\"]{1,189}")


def plain_email(text: str) -> str:
    """The address in lower case; "" for what is none."""
    text = text.strip().lower()
    return text if _EMAIL.fullmatch(text) else ""


def plain_phone(text: str) -> str:
    """The number as E.164; "" for what is none, or has no country code."""
    import phonenumbers

    try:
        number = phonenumbers.parse(text.strip())
    except phonenumbers.NumberParseException:
        return ""
    if not phonenumbers.is_possible_number(number):
        return ""
    return phonenumbers.format_number(number, phonenumbers.PhoneNumberFormat.E164)


def plain_attributes(given: Mapping[str, object]) -> dict[str, str | int | float | bool]:
    """Those that can be kept: plain values under short names, texts cut to their longest."""
    kept: dict[str, str | int | float | bool] = {}
    for name, value in given.items():
        if not 0 < len(name) <= MAX_ATTRIBUTE_NAME or "\0" in name:
            continue
        if isinstance(value, bool | int | float) and abs(value) < 1e15:
            kept[name] = value
        elif isinstance(value, str) and "\0" not in value:
            kept[name] = value[:MAX_ATTRIBUTE_VALUE]
    return kept
