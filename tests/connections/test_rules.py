"""Checks that fell due together are spread out, and never too late to renew."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta

from apps.connections.rules import JITTER, REFRESH_AHEAD, next_check

NOW = datetime(2026, 12, 1, 9, tzinfo=UTC)
DUE = NOW + timedelta(minutes=30)
WINDOW = (DUE - NOW) * JITTER


def test_checks_that_fell_due_together_are_spread_evenly_over_a_tenth() -> None:
    dice = random.Random(8)
    places = [(next_check(DUE, None, now=NOW, dice=dice) - DUE) / WINDOW for _ in range(1000)]
    assert all(0 <= place <= 1 for place in places)
    tenths = [sum(int(place * 10) == tenth for place in places) for tenth in range(10)]
    assert min(tenths) > 50


def test_no_spread_makes_a_renewal_late() -> None:
    dice, expires = random.Random(8), DUE + REFRESH_AHEAD
    assert {next_check(DUE, expires, now=NOW, dice=dice) for _ in range(100)} == {expires - REFRESH_AHEAD}
