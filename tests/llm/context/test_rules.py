"""Who leaves, who stays, and what becomes of a window that cannot be kept?"""

from __future__ import annotations

import pytest

from kernel.errors import SilasError
from llm.context import rules
from llm.context.budget import TokenBudget
from llm.context.enums import Kind, Reason, Zone
from llm.context.items import ContextItem, Window
from tests.factories.context import SMALL, item, result, sized

ROOMY = TokenBudget()


def enforced(*items: ContextItem, budget: TokenBudget = SMALL, turn: int = 10) -> Window:
    return rules.enforce_budget(items, budget=budget, profile="conversation", turn=turn)


def left(window: Window) -> list[str]:
    return [kept.ctx_id for kept in window.items]


def gone(window: Window) -> dict[str, Reason]:
    return {evicted.ctx_id: evicted.reason for evicted in window.evicted}


# -- what cannot be kept ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("zone", list(Zone))
def test_budget_below_what_is_pinned_is_refused_with_the_zone(zone: Zone) -> None:
    with pytest.raises(SilasError) as refused:
        enforced(sized("a", 451, zone=zone, pinned=True))
    assert refused.value.code == "context_pinned_too_large"
    assert refused.value.extra["zone"] == zone.value


def test_system_item_is_never_evicted_for_want_of_a_pin() -> None:
    with pytest.raises(SilasError) as refused:
        enforced(sized("a", 201, zone=Zone.SYSTEM, kind=Kind.SYSTEM))
    assert refused.value.extra == {"zone": "system", "needed": 201, "room": 200}


def test_unknown_profile_is_refused() -> None:
    with pytest.raises(SilasError) as refused:
        rules.enforce_budget([], budget=SMALL, profile="all-mine", turn=1)
    assert refused.value.code == "context_profile_unknown"


def test_refusal_repeats_nothing_of_what_was_said() -> None:
    with pytest.raises(SilasError) as refused:
        enforced(item("a", "secret " * 900, pinned=True))
    assert "secret" not in str(refused.value.as_json())


def test_message_that_calls_itself_a_system_item_leaves_like_any_other() -> None:
    fake = sized("fake", 300, turn=1, source="system")
    assert left(enforced(fake, sized("b", 300, turn=2))) == ["b"]


def test_relevance_that_is_no_number_counts_as_none() -> None:
    memories = [sized(name, 150, zone=Zone.MEMORY, kind=Kind.MEMORY, relevance=float("nan")) for name in "ab"]
    best = sized("c", 150, zone=Zone.MEMORY, kind=Kind.MEMORY, relevance=0.1)
    assert left(enforced(*memories, best)) == ["c"]


# -- tier 1: masking -------------------------------------------------------------------------------------------------


def test_old_result_is_masked_and_recounted() -> None:
    window = enforced(result("r", turn=4), budget=ROOMY)
    (masked,) = window.items
    assert masked.content == "[Result of claim_status (SUCCEEDED) — 214 tokens — see memory for details]"
    assert masked.masked
    assert masked.token_count < 214
    assert window.used[Zone.CHRONICLE] == masked.token_count


def test_failed_result_still_says_that_it_failed() -> None:
    assert "(FAILED)" in enforced(result("r", failed=True), budget=ROOMY).items[0].content


def test_result_of_the_last_five_turns_is_shown() -> None:
    assert not enforced(result("r", turn=5), budget=ROOMY).items[0].masked


def test_result_shorter_than_its_placeholder_is_shown() -> None:
    assert enforced(result("r", "paid"), budget=ROOMY).items[0].content == "paid"


def test_masking_is_recorded() -> None:
    assert gone(enforced(result("r"), budget=ROOMY)) == {"r": Reason.MASKED}


def test_masked_window_is_masked_once() -> None:
    once = enforced(result("r"), budget=ROOMY)
    assert enforced(*once.items, budget=ROOMY).items == once.items


# -- tier 1: acknowledgements ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["ok", "Thanks!", "got it.", "Sure", " yes ", "\U0001f44d", "OK!?"])
def test_acknowledgement_is_dropped(text: str) -> None:
    assert gone(enforced(item("a", text), item("b"), budget=ROOMY)) == {"a": Reason.TRIVIAL}


@pytest.mark.parametrize("text", ["ok, but POL-1 is wrong", "no way", "yes\nno", "k", "ok" + "!" * 100, ""])
def test_message_that_says_something_stays(text: str) -> None:
    assert left(enforced(item("a", text), budget=ROOMY)) == ["a"]


def test_yes_to_a_question_stays() -> None:
    window = enforced(item("q", "Shall I go on?", source="bot"), item("a", "yes"), item("b", "ok"), budget=ROOMY)
    assert left(window) == ["q", "a"]


def test_acknowledgement_of_a_person_stays() -> None:
    assert left(enforced(item("a", "ok", source="human"), budget=ROOMY)) == ["a"]


def test_pinned_acknowledgement_stays() -> None:
    assert left(enforced(item("a", "ok", pinned=True), budget=ROOMY)) == ["a"]


# -- tier 1: subscriptions -------------------------------------------------------------------------------------------


def subscription(ctx_id: str, tokens: int = 50, **fields: int) -> ContextItem:
    return sized(ctx_id, tokens, zone=Zone.WORKSPACE, kind=Kind.SUBSCRIPTION, **fields)


def test_subscription_nobody_refers_to_is_put_away() -> None:
    window = enforced(subscription("old", turn=0), subscription("new", turn=1), budget=ROOMY)
    assert gone(window) == {"old": Reason.STALE_SUBSCRIPTION}
    assert left(window) == ["new"]


def test_subscription_above_its_cap_is_put_away() -> None:
    assert gone(enforced(subscription("big", 2001, turn=9), budget=ROOMY)) == {"big": Reason.SUBSCRIPTION_TOO_LARGE}


# -- tier 1: zones ---------------------------------------------------------------------------------------------------


def test_oldest_messages_leave_first() -> None:
    said = [sized(str(turn), 100, turn=turn) for turn in range(8)]
    assert left(enforced(*said)) == ["4", "5", "6", "7"]


def test_least_relevant_memories_leave_first() -> None:
    found = [sized(str(at), 90, zone=Zone.MEMORY, kind=Kind.MEMORY, relevance=at / 10) for at in (5, 1, 9)]
    assert left(enforced(*found)) == ["5", "9"]


def test_finished_plans_leave_before_active_ones() -> None:
    plans = [
        sized(name, 100, zone=Zone.WORKSPACE, kind=Kind.PLAN, turn=turn, finished=over)
        for name, turn, over in (("active", 1, False), ("over", 9, True))
    ]
    assert left(enforced(*plans)) == ["active"]


def test_pinned_memory_outlives_better_ones() -> None:
    profile = sized("profile", 120, zone=Zone.MEMORY, kind=Kind.MEMORY, relevance=0, pinned=True)
    assert left(enforced(profile, sized("m", 120, zone=Zone.MEMORY, kind=Kind.MEMORY))) == ["profile"]


def test_zone_that_is_full_takes_nothing_from_another() -> None:
    window = enforced(*(sized(str(turn), 100, turn=turn) for turn in range(8)), sized("m", 100, zone=Zone.MEMORY))
    assert "m" in left(window)


def test_item_larger_than_its_zone_leaves() -> None:
    assert gone(enforced(sized("giant", 5000))) == {"giant": Reason.ZONE_FULL}


# -- groups ----------------------------------------------------------------------------------------------------------


def test_group_that_does_not_fit_leaves_whole() -> None:
    call = sized("call", 30, kind=Kind.TOOL_CALL, group="g", turn=9)
    results = [sized(f"r{at}", 300, kind=Kind.TOOL_RESULT, group="g", turn=9, tool="t") for at in range(2)]
    assert left(enforced(call, *results, sized("m", 30, turn=10))) == ["m"]


def test_group_is_as_old_as_its_first_part() -> None:
    call = sized("call", 200, kind=Kind.TOOL_CALL, group="g", turn=6)
    late = sized("late", 100, kind=Kind.TOOL_RESULT, group="g", turn=9)
    assert left(enforced(call, sized("m", 200, turn=7), late)) == ["m"]


def test_group_with_a_pinned_part_stays_whole() -> None:
    call = sized("call", 200, group="g", turn=1)
    assert left(enforced(call, sized("pinned", 200, group="g", pinned=True), sized("m", 100))) == ["call", "pinned"]


def test_group_over_two_zones_leaves_both() -> None:
    call = sized("call", 400, group="g", turn=1)
    outcome = sized("out", 50, zone=Zone.WORKSPACE, kind=Kind.EXECUTION_RESULT, group="g")
    assert left(enforced(call, outcome, sized("m", 100, turn=2))) == ["m"]


def test_acknowledgement_inside_a_group_does_not_split_it() -> None:
    window = enforced(item("a", "ok", group="g"), item("b", group="g"), budget=ROOMY)
    assert left(window) == ["a", "b"]


# -- tier 2 ----------------------------------------------------------------------------------------------------------

BRIM = TokenBudget(total_tokens=1000, system_max=200, eviction_threshold_pct=0.5)


def full() -> Window:
    """720 of 1,000: every zone within its room, the whole above the threshold of 500."""
    items = [
        *(sized(f"c{at}", 100, turn=at) for at in range(4)),
        *(sized(f"m{at}", 100, zone=Zone.MEMORY, kind=Kind.MEMORY, relevance=at) for at in range(2)),
        sized("plan", 120, zone=Zone.WORKSPACE, kind=Kind.PLAN),
    ]
    return rules.first_tier(items, budget=BRIM, profile="conversation", turn=5)


def test_window_below_its_threshold_is_left_alone() -> None:
    window = rules.first_tier([sized("a", 400)], budget=BRIM, profile="conversation", turn=5)
    assert rules.second_tier(window, budget=BRIM) is window


def test_without_a_scorer_the_fullest_zone_pays() -> None:
    window = rules.second_tier(full(), budget=BRIM)
    assert gone(window) == {"m0": Reason.WINDOW_FULL, "c0": Reason.WINDOW_FULL, "plan": Reason.WINDOW_FULL}
    assert window.total == 400


def test_scorers_group_leaves_first_and_no_more_than_needed() -> None:
    window = rules.second_tier(full(), budget=BRIM, evict=[["c3", "m1"], ["plan"], ["c0"]])
    assert gone(window) == {"c3": Reason.SCORED, "m1": Reason.SCORED, "plan": Reason.SCORED}


def test_scorer_that_wants_everything_kept_is_overruled_by_the_rules() -> None:
    window = rules.second_tier(full(), budget=BRIM, evict=[], keep={kept.ctx_id for kept in full().items})
    assert window.total <= 500


def test_scorers_unknown_and_contradicted_ids_are_passed_over() -> None:
    window = rules.second_tier(full(), budget=BRIM, evict=[["nobody", "c3"]], keep={"c3"})
    assert "c3" in left(window)


def test_scorer_cannot_evict_what_is_pinned() -> None:
    items = (*full().items, sized("pin", 30, pinned=True), sized("sys", 30, zone=Zone.SYSTEM))
    window = rules.first_tier(items, budget=BRIM, profile="conversation", turn=5)
    assert {"pin", "sys"} <= set(left(rules.second_tier(window, budget=BRIM, evict=[["pin", "sys"]])))


def test_scorers_word_on_one_part_evicts_the_whole_group() -> None:
    items = [sized("a", 200, group="g"), sized("b", 100), sized("c", 150, zone=Zone.MEMORY, group="g")]
    window = rules.first_tier(items, budget=BRIM, profile="conversation", turn=5)
    tight = TokenBudget(total_tokens=1000, system_max=200, eviction_threshold_pct=0.4)
    assert left(rules.second_tier(window, budget=tight, evict=[["c"]])) == ["b"]


def test_scorer_sees_nothing_that_must_stay() -> None:
    window = enforced(sized("a", 20, pinned=True), sized("b", 20), sized("s", 20, zone=Zone.SYSTEM))
    assert [[part.ctx_id for part in group] for group in rules.evictable(window)] == [["b"]]


# -- the record ------------------------------------------------------------------------------------------------------


def test_record_holds_ids_and_counts_and_no_text() -> None:
    window = enforced(item("a", "secret " * 300), item("b", "secret"), result("r", "secret " * 100, tool="secret_tool"))
    record = window.record()
    assert "secret" not in str(record)
    assert record["zones"]["chronicle"]["tokens"] == window.used[Zone.CHRONICLE]
    assert {each["id"]: each["reason"] for each in record["evicted"]} == {"a": "zone_full", "r": "masked"}


def test_record_of_a_huge_window_is_bounded_and_counts_all() -> None:
    record = enforced(*(item(str(at)) for at in range(5000))).record()
    assert len(record["evicted"]) == 100
    assert record["evicted_count"] > 4900
