"""Do levels move by gates and time only?"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from apps.access.rules import AccessController, Grant, highest_level

NOON = datetime(2026, 2, 1, 12, tzinfo=UTC)


@dataclass(frozen=True)
class Level:
    tools: list[str] = field(default_factory=list)
    requires: list[str] = field(default_factory=list)
    expires_after: int | None = None


LEVELS = {
    "public": Level(["knowledge_search"]),
    "verified": Level(["knowledge_search", "claim_status"], ["identity_verified"], 900),
    "trusted": Level(["knowledge_search", "claim_status", "close_account"], ["identity_verified", "second_factor"]),
}
VISITOR = AccessController(LEVELS, Grant())


def _verified() -> AccessController:
    return VISITOR.gate_passed("identity_verified", customer="C-1", customer_name="Maria", moment=NOON)


def test_visitor_without_gates_has_public_tools_only() -> None:
    assert VISITOR.allowed_tools() == {"knowledge_search"}


def test_passed_gate_raises_level_with_its_expiry() -> None:
    grant = _verified().grant
    assert grant.level == "verified"
    assert grant.expires_at == NOON + timedelta(seconds=900)


def test_level_that_asks_for_more_than_was_passed_is_lost() -> None:
    stricter = LEVELS | {"verified": Level(["claim_status"], ["identity_verified", "second_factor"])}
    assert AccessController(stricter, _verified().grant).at(NOON).grant == Grant()


def _edited(seconds: int | None, *requires: str, then: AccessController) -> AccessController:
    level = Level(["claim_status"], [*requires], seconds)
    return AccessController({"public": LEVELS["public"], "verified": level}, then.grant)


def test_level_that_was_made_shorter_is_shorter_for_whoever_has_it() -> None:
    shorter = _edited(300, "identity_verified", then=_verified())
    assert shorter.at(NOON + timedelta(seconds=299)).grant.expires_at == NOON + timedelta(seconds=300)
    assert shorter.at(NOON + timedelta(seconds=300)).grant == Grant()


def test_level_without_end_that_was_given_one_ends_for_whoever_has_it() -> None:
    endless = _edited(None, "identity_verified", then=VISITOR).gate_passed(
        "identity_verified", customer="C-1", customer_name="", moment=NOON
    )
    assert endless.grant.expires_at is None
    ending = _edited(900, "identity_verified", then=endless)
    assert ending.at(NOON + timedelta(seconds=899)).grant.level == "verified"
    assert ending.at(NOON + timedelta(seconds=900)).grant == Grant()


def test_level_that_was_made_longer_is_no_longer_for_whoever_has_it() -> None:
    longer = _edited(9000, "identity_verified", then=_verified())
    assert longer.at(NOON + timedelta(seconds=900)).grant == Grant()


def test_gate_that_ends_later_than_the_one_asked_for_now_holds_nothing_up() -> None:
    """Both gates were asked for, the first counts from noon; now the first alone is."""
    both = _edited(None, "identity_verified", "second_factor", then=VISITOR)
    for minutes, gate in ((0, "identity_verified"), (20, "second_factor")):
        moment = NOON + timedelta(minutes=minutes)
        both = both.gate_passed(gate, customer="C-1", customer_name="", moment=moment)
    assert both.grant.level == "verified"
    assert _edited(900, "identity_verified", then=both).at(NOON + timedelta(minutes=20)).grant == Grant()


def test_grant_of_before_that_never_ends_is_over_once_its_level_has_an_end() -> None:
    old = AccessController(LEVELS, Grant("verified", None, {"identity_verified": None}, "C-1"))
    assert old.at(NOON).grant == Grant()


def test_grant_of_before_keeps_the_end_it_has() -> None:
    until = NOON + timedelta(seconds=60)
    old = AccessController(LEVELS, Grant("verified", until, {"identity_verified": None}, "C-1"))
    assert old.at(NOON).grant.expires_at == until
    assert old.at(until).grant == Grant()


def test_gate_passed_after_the_level_ran_out_stands_alone() -> None:
    later = NOON + timedelta(seconds=901)
    again = _verified().gate_passed("second_factor", customer="C-1", customer_name="", moment=later)
    assert again.grant.level == "public"
    assert set(again.grant.verified) == {"second_factor"}


def test_level_ends_with_the_identity_it_rests_on() -> None:
    until = NOON + timedelta(seconds=60)
    signed = VISITOR.gate_passed("identity_verified", customer="C-1", customer_name="", moment=NOON, until=until)
    assert signed.grant.expires_at == until


def test_higher_level_ends_with_the_identity_it_rests_on() -> None:
    until = NOON + timedelta(seconds=60)
    signed = VISITOR.gate_passed("identity_verified", customer="C-1", customer_name="", moment=NOON, until=until)
    trusted = signed.gate_passed("second_factor", customer="C-1", customer_name="", moment=NOON)
    assert trusted.grant.level == "trusted"
    assert trusted.grant.expires_at == until


def test_newer_identity_puts_the_end_off() -> None:
    signed = VISITOR
    for seconds in (60, 120):
        until = NOON + timedelta(seconds=seconds)
        signed = signed.gate_passed("identity_verified", customer="C-1", customer_name="", moment=NOON, until=until)
    assert signed.grant.expires_at == NOON + timedelta(seconds=120)


def test_identity_that_has_ended_passes_nothing() -> None:
    signed = VISITOR.gate_passed("identity_verified", customer="C-1", customer_name="", moment=NOON, until=NOON)
    assert signed.grant == Grant()


def test_gate_passed_for_nobody_passes_nothing() -> None:
    assert VISITOR.gate_passed("identity_verified", customer="", customer_name="", moment=NOON).grant == Grant()


def test_gate_of_no_level_puts_no_end_off() -> None:
    later = NOON + timedelta(seconds=800)
    assert _verified().gate_passed("politeness", customer="C-1", customer_name="", moment=later) == _verified()


def test_gate_of_no_level_for_another_customer_leaves_nothing() -> None:
    assert _verified().gate_passed("politeness", customer="C-2", customer_name="", moment=NOON).grant == Grant()


def test_half_of_two_gates_does_not_count_for_ever() -> None:
    levels = {"public": LEVELS["public"], "trusted": Level(["close_account"], ["one", "two"], 600)}
    half = AccessController(levels, Grant()).gate_passed("one", customer="C-1", customer_name="", moment=NOON)
    late = NOON + timedelta(seconds=600)
    assert half.gate_passed("two", customer="C-1", customer_name="", moment=late).grant.level == "public"


def test_passed_gate_of_no_level_raises_nothing() -> None:
    assert VISITOR.gate_passed("politeness", customer="C-1", customer_name="", moment=NOON).grant.level == "public"


def test_level_with_two_gates_needs_both() -> None:
    assert (
        _verified().gate_passed("second_factor", customer="C-1", customer_name="", moment=NOON).grant.level == "trusted"
    )


def test_one_of_two_required_gates_opens_nobody_s_records() -> None:
    levels = {"public": LEVELS["public"], "trusted": LEVELS["trusted"]}
    half = AccessController(levels, Grant()).gate_passed(
        "identity_verified", customer="C-1", customer_name="Maria", moment=NOON
    )
    assert half.grant.customer == "C-1"
    assert half.subject == ""


def test_level_s_subject_is_its_customer() -> None:
    assert _verified().subject == "C-1"


def test_second_gate_of_another_customer_does_not_add_up() -> None:
    mixed = _verified().gate_passed("second_factor", customer="C-2", customer_name="", moment=NOON)
    assert mixed.grant.level == "public"


def test_grant_at_its_expiry_is_public_again() -> None:
    assert _verified().at(NOON + timedelta(seconds=900)).grant == Grant()


def test_grant_just_before_expiry_still_stands() -> None:
    assert _verified().at(NOON + timedelta(seconds=899)).grant.level == "verified"


def test_grant_of_a_removed_level_is_public() -> None:
    assert AccessController(LEVELS, Grant("gold", None)).at(NOON).grant == Grant()


def test_reached_levels_are_the_level_and_those_below() -> None:
    assert _verified().reached_levels() == ("public", "verified")


def test_withheld_tool_names_the_lowest_level_that_has_it() -> None:
    assert VISITOR.withholding_level("claim_status") == "verified"


def test_tool_within_reach_is_not_withheld() -> None:
    assert _verified().withholding_level("claim_status") is None


@given(st.sets(st.sampled_from(["identity_verified", "second_factor", "x", "y"])))
def test_level_never_exceeds_what_its_gates_allow(verified: set[str]) -> None:
    level = highest_level(LEVELS, verified)
    assert level == "public" or set(LEVELS[level].requires) <= verified
