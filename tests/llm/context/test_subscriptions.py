"""Does a window keep asking for what it was told to, for as long as it should, and for nothing else?"""

from __future__ import annotations

import pytest

from kernel.errors import SilasError
from llm.context.subscriptions import MOST_ACTIVE, MOST_LISTED, Subscription, expire, subscribe


def asked(*targets: str, before: tuple[Subscription, ...] = ()) -> tuple[Subscription, ...]:
    for turn, target in enumerate(targets):
        before = subscribe(before, "memory_query", target, turn=turn, strategy="semantic")
    return before


def active(subscriptions: tuple[Subscription, ...]) -> list[str]:
    return [each.target for each in subscriptions if each.active]


@pytest.mark.parametrize("kind", ["file", "file_lines", "", "url", "MEMORY_QUERY"])
def test_what_is_no_question_to_memory_is_refused(kind: str) -> None:
    with pytest.raises(SilasError) as refused:
        subscribe((), kind, "/etc/passwd", turn=1, strategy="semantic")
    assert refused.value.code == "subscription_unsupported"


@pytest.mark.parametrize("target", ["", " \n\t"])
def test_empty_question_is_refused(target: str) -> None:
    with pytest.raises(SilasError) as refused:
        asked(target)
    assert refused.value.code == "subscription_invalid"


def test_same_question_is_asked_once_and_stays_young() -> None:
    (one,) = asked("cat", "cat ")
    assert one.created == 0
    assert one.referenced == 1


def test_of_too_many_the_oldest_are_put_away_and_stay_listed() -> None:
    found = asked("a", "b", "c", "d")
    assert active(found) == ["b", "c", "d"]
    assert len(found) == 4
    assert MOST_ACTIVE == 3


def test_list_is_bounded_whatever_is_asked() -> None:
    assert len(asked(*map(str, range(500)))) == MOST_LISTED


def test_long_question_is_cut() -> None:
    assert len(asked("x" * 100_000)[0].target) == 400


def test_put_away_question_comes_back_when_it_is_asked_again() -> None:
    assert active(asked("a", before=asked("a", "b", "c", "d"))) == ["c", "d", "a"]


@pytest.mark.parametrize(("turn", "stays"), [(9, True), (10, False), (11, False)])
def test_question_nobody_repeats_is_put_away_after_ten_turns(turn: int, stays: bool) -> None:
    assert bool(active(expire(asked("a"), turn=turn, ttl=10))) is stays
