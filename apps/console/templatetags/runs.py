"""Template filters for exact amounts of money."""

from __future__ import annotations

from decimal import Decimal

from django import template
from django.utils.translation import gettext as _

from apps.console.pages.automations.presenter import dollars_of

register = template.Library()


@register.filter
def exact_usd(amount: object) -> str:
    """An amount in dollars with cents and every further digit."""
    dollars = dollars_of(amount).normalize()
    places = -int(dollars.as_tuple().exponent)
    return f"${dollars:,.{max(places, 2)}f}" if abs(dollars) < Decimal("1e15") else _("too large to show")
