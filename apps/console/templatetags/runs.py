"""How do money and schedules of what runs by itself look on the page? Filters without queries."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from django import template

from apps.console.receipts import dollars_of

register = template.Library()


@register.filter
def exact_usd(amount: Any) -> str:
    """Dollars to the cent, and every digit below it that there is."""
    found = dollars_of(amount).normalize()
    places = -int(found.as_tuple().exponent)
    return f"${found:,.{max(places, 2)}f}" if abs(found) < Decimal("1e15") else "more than can be said"
