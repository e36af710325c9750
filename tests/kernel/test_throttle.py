"""Does a throttle hold when many try at once?"""

from __future__ import annotations

from uuid import uuid4

import pytest
from django.core.cache import cache

from kernel import throttle
from kernel.throttle import Limit
from tests.rivals import race


@pytest.fixture
def limit() -> Limit:
    return Limit(f"test:{uuid4()}", most=3, seconds=60)


def test_try_within_the_limit_is_let_through(limit: Limit) -> None:
    assert [throttle.begin([limit]) for _ in range(3)] == [None, None, None]


def test_try_beyond_the_limit_names_it(limit: Limit) -> None:
    assert [throttle.begin([limit]) for _ in range(4)][-1] is limit


def test_rivals_get_no_more_than_the_limit_together(limit: Limit) -> None:
    answers = race(*[lambda: throttle.begin([limit])] * 12)
    assert answers.count(None) == 3


def test_refused_try_counts_under_no_other_limit(limit: Limit) -> None:
    other = Limit(f"test:{uuid4()}", most=9, seconds=60)
    for _ in range(5):
        throttle.begin([other, limit])
    assert cache.get(other.key) == 3


def test_try_that_is_taken_back_leaves_room_for_another(limit: Limit) -> None:
    for _ in range(5):
        throttle.begin([limit])
        throttle.take_back([limit])
    assert throttle.begin([limit]) is None


def test_count_runs_out_by_itself(limit: Limit) -> None:
    throttle.begin([limit])
    assert 0 < cache._cache.get_client().ttl(cache.make_key(limit.key)) <= 60  # type: ignore[attr-defined]


def test_count_that_ran_out_is_taken_back_without_a_fault(limit: Limit) -> None:
    throttle.take_back([limit])
    assert cache.get(limit.key) is None
