"""Paces and penalties by name, with a clock of the test's own."""

from __future__ import annotations

import math

import pytest

from kernel.ratelimit import token_buckets
from kernel.ratelimit.token_buckets import Penalties, TokenBucket, TokenBuckets


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


def test_pace_lets_a_burst_through_and_a_trickle_after_it() -> None:
    clock = Clock()
    paces = TokenBuckets(3, 1, clock=clock)
    assert [paces.take("a") for _ in range(4)] == [True, True, True, False]
    assert paces.take("b")
    clock.now += 1
    assert paces.take("a")
    assert not paces.take("a")


def test_penalty_doubles_until_it_is_longest() -> None:
    clock = Clock()
    penalties = Penalties(first=5, longest=30, clock=clock)
    seen = []
    for _ in range(5):
        penalties.punish("a")
        seen.append(penalties.seconds_left("a"))
        clock.now += seen[-1]
        assert penalties.seconds_left("a") == 0
    assert seen == [5, 10, 20, 30, 30]
    assert penalties.seconds_left("b") == 0


def test_penalty_begins_again_after_a_long_quiet() -> None:
    clock = Clock()
    penalties = Penalties(first=5, longest=30, clock=clock)
    penalties.punish("a")
    clock.now += 5 + 30
    penalties.punish("a")
    assert penalties.seconds_left("a") == 5


def test_names_are_kept_in_bounded_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(token_buckets, "MAX_KEYS", 10)
    penalties, paces = Penalties(), TokenBuckets(1, 0)
    for number in range(1000):
        penalties.punish(str(number))
        paces.take(str(number))
    assert len(penalties._until) == 10
    assert len(paces._buckets) == 10
    assert penalties.seconds_left("999") > 0


def test_bucket_that_is_never_refilled_is_waited_for_for_ever() -> None:
    bucket = TokenBucket(1, 0)
    assert bucket.wait() == 0
    assert bucket.wait() == math.inf
