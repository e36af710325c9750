"""Is taint a lattice that only rises?"""

from __future__ import annotations

from functools import reduce

from hypothesis import given
from hypothesis import strategies as st

from kernel.taint import Taint, join

TAINTS = st.sampled_from(list(Taint))
TRUST = [Taint.OWNER, Taint.AUTH, Taint.EXTERNAL]


@given(st.lists(TAINTS, min_size=1))
def test_joined_text_is_trusted_no_further_than_any_of_its_parts(parts: list[Taint]) -> None:
    assert all(TRUST.index(join(*parts)) >= TRUST.index(part) for part in parts)


@given(st.lists(TAINTS, min_size=1))
def test_joined_text_is_as_trusted_as_one_of_its_parts(parts: list[Taint]) -> None:
    assert join(*parts) in parts


@given(st.lists(TAINTS, min_size=1), TAINTS)
def test_whatever_is_added_taint_never_falls(parts: list[Taint], more: Taint) -> None:
    assert TRUST.index(join(*parts, more)) >= TRUST.index(join(*parts))


@given(TAINTS, TAINTS, TAINTS)
def test_join_knows_no_order(one: Taint, two: Taint, three: Taint) -> None:
    assert join(one, two) == join(two, one) and join(join(one, two), three) == join(one, join(two, three))


@given(TAINTS)
def test_join_with_itself_changes_nothing(one: Taint) -> None:
    assert join(one, one) == one == join(one)


@given(st.lists(TAINTS, min_size=1))
def test_joining_step_by_step_is_joining_at_once(parts: list[Taint]) -> None:
    assert reduce(join, parts) == join(*parts)


def test_what_comes_from_nowhere_is_a_strangers() -> None:
    assert join() == Taint.EXTERNAL
