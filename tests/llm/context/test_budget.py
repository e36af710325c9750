"""Can a budget exist that nobody can keep? And does the arithmetic give what the contract computes?"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernel.errors import SilasError
from llm.context.budget import PROFILES, ContextProfile, TokenBudget, count_tokens
from llm.context.enums import Zone
from llm.context.metadata import select_within_budget

NAN = float("nan")


@pytest.mark.parametrize(
    "shares", [(-0.1, 0.2, 0.2), (1.1, 0, 0), (NAN, 0.1, 0.1), (0.5, 0.2, 0.11), (float("inf"), 0, 0), (0.81, 0, 0)]
)
def test_profile_with_bad_shares_is_refused(shares: tuple[float, float, float]) -> None:
    with pytest.raises(SilasError) as refused:
        ContextProfile("bad", *shares)
    assert refused.value.code == "context_profile_invalid"


def test_profile_of_exactly_four_fifths_is_accepted() -> None:
    assert ContextProfile("full", 0.1, 0.3, 0.4).memory_pct == 0.3


@pytest.mark.parametrize(
    "fields",
    [
        {"total_tokens": 0},
        {"total_tokens": 7_999},
        {"system_max": 0},
        {"skill_metadata_budget_pct": 0.11},
        {"skill_metadata_budget_pct": NAN},
        {"eviction_threshold_pct": 0},
        {"eviction_threshold_pct": 1.01},
        {"max_subscription_tokens": -1},
        {"subscription_ttl_turns": 0},
        {"observation_mask_after_turns": -1},
        {"default_profile": "nobody"},
    ],
)
def test_budget_that_cannot_be_kept_is_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(SilasError) as refused:
        TokenBudget(**fields)
    assert refused.value.code == "context_budget_invalid"


def test_unknown_profile_gets_no_silent_default() -> None:
    with pytest.raises(SilasError) as refused:
        TokenBudget().profile("Conversation")
    assert refused.value.code == "context_profile_unknown"


def test_allotment_is_that_of_the_contracts_example() -> None:
    budget = TokenBudget(total_tokens=10_000, system_max=1_000)
    found = budget.allotment(PROFILES["conversation"], system_tokens=2_500)
    assert [found.rooms[zone] for zone in (Zone.CHRONICLE, Zone.MEMORY, Zone.WORKSPACE)] == [4050, 1800, 1350]
    assert found.headroom == 1800


def test_allotment_counts_in_decimals() -> None:
    budget = TokenBudget(total_tokens=100, system_max=50)
    assert budget.allotment(ContextProfile("odd", 0.29, 0, 0), system_tokens=0).rooms[Zone.CHRONICLE] == 29


@given(st.integers(1, 10**6), st.integers(0, 10**6), st.sampled_from(sorted(PROFILES)))
def test_headroom_is_a_fifth_of_what_can_be_shared(total: int, system: int, name: str) -> None:
    budget = TokenBudget(total_tokens=total, system_max=min(8_000, total))
    found = budget.allotment(PROFILES[name], system_tokens=system)
    assert found.headroom * 5 >= total - min(system, budget.system_max)


@pytest.mark.parametrize(("text", "tokens"), [("", 0), ("abc", 0), ("x" * 7, 2), ("x" * 3500, 1000)])
def test_counter_divides_characters(text: str, tokens: int) -> None:
    assert count_tokens(text) == tokens


def test_counter_weighs_what_is_not_latin_by_its_bytes() -> None:
    assert count_tokens("語" * 700) == 600


def test_counter_takes_a_lone_surrogate() -> None:
    assert count_tokens("\ud800" * 7) == 6


def test_metadata_keeps_the_first_and_drops_the_rest() -> None:
    assert select_within_budget("abcde", tokens=3, weight_of=lambda _: 1) == (("a", "b", "c"), ("d", "e"))


def test_metadata_giant_does_not_push_out_those_behind_it() -> None:
    assert select_within_budget([1, 99, 2], tokens=5, weight_of=lambda weight: weight) == ((1, 2), (99,))
