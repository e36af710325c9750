"""Five stages in their order, globs, modes; decided from values."""

from __future__ import annotations

import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.safety.enums import Decision, Mode, Stage, Tier, Tolerance
from apps.safety.rules.globs import compile_glob, first_match
from apps.safety.rules.normalization import canonical_text
from apps.safety.rules.stages import directive, evaluate
from apps.safety.rules.templates import TEMPLATES
from apps.safety.schemas import FixedScore, Intended, Policy, Verdict

READS = "reading the manual"


def verdict(policy: Policy | None = None, hint: str = READS, **facts: Any) -> Verdict:
    return evaluate(policy or Policy(), Intended(hint, **facts))


def test_harmless_step_goes_on() -> None:
    assert verdict().decision is Decision.GO


@pytest.mark.parametrize(("steps", "decision"), [(3, Decision.GO), (4, Decision.PAUSE)])
def test_step_after_the_limit_pauses(steps: int, decision: Decision) -> None:
    assert verdict(Policy(max_steps=3), steps=steps).decision is decision


def test_no_limit_is_zero() -> None:
    assert verdict(Policy(max_steps=0), steps=10_000).decision is Decision.GO


@pytest.mark.parametrize(
    ("outcome", "decision"),
    [("failure", Decision.PAUSE), ("success", Decision.GO), ("skipped", Decision.GO), ("", Decision.GO)],
)
def test_failed_step_before_pauses(outcome: str, decision: Decision) -> None:
    assert verdict(outcome=outcome).decision is decision


def test_first_stage_that_pauses_ends_it() -> None:
    said = verdict(Policy(max_steps=1, deny=("*drop*",)), "drop it", outcome="failure", steps=2)
    assert (said.decision, said.stage) == (Decision.PAUSE, Stage.STEP_LIMIT)


def test_failure_comes_before_patterns() -> None:
    said = verdict(Policy(deny=("*drop*",)), "drop it", outcome="failure")
    assert (said.decision, said.stage) == (Decision.PAUSE, Stage.OUTCOME)


@pytest.mark.parametrize(
    ("lists", "decision"),
    [
        ({"deny": ("read*",), "requires_approval": ("read*",), "auto_approve": ("read*",)}, Decision.STOP),
        ({"requires_approval": ("read*",), "auto_approve": ("read*",)}, Decision.PAUSE),
        ({"auto_approve": ("read*",)}, Decision.GO),
    ],
)
def test_pattern_that_forbids_beats_one_that_allows(lists: dict[str, Any], decision: Decision) -> None:
    said = verdict(Policy(**lists))
    assert (said.decision, said.stage) == (decision, Stage.PATTERN)


def test_denied_action_stops_and_wants_a_code() -> None:
    said = verdict(Policy(deny=("read*",)))
    assert said.verifies and said.tier is Tier.DANGER_ZONE


def test_allowed_pattern_skips_tier_and_tolerance() -> None:
    assert verdict(Policy(auto_approve=("delete*",)), "delete one user").decision is Decision.GO


def test_allowed_pattern_counts_for_nothing_that_hides() -> None:
    assert verdict(Policy(auto_approve=("read*",)), "read \u200bfile; cm0gLXJmIC8=").decision is Decision.STOP


@pytest.mark.parametrize("hint", ["r\u200bm -rf x", "ｒｍ　－ｒｆ x", "RM\n-RF x", "%72m -rf x", "cm0gLXJmIHg="])
def test_denied_pattern_finds_every_reading(hint: str) -> None:
    assert verdict(Policy(deny=("*rm -rf*",)), hint).stage is Stage.PATTERN


@pytest.mark.parametrize(
    ("hint", "decision", "verifies"),
    [
        ("update the address", Decision.PAUSE, False),
        ("delete the user 5", Decision.PAUSE, True),
        ("drop table users", Decision.STOP, True),
    ],
)
def test_tier_decides(hint: str, decision: Decision, verifies: bool) -> None:
    said = verdict(None, hint)
    assert (said.decision, said.verifies) == (decision, verifies)


@pytest.mark.parametrize(
    ("tolerance", "score", "decision"),
    [
        (Tolerance.CONSERVATIVE, 25, Decision.GO),
        (Tolerance.CONSERVATIVE, 26, Decision.PAUSE),
        (Tolerance.MODERATE, 30, Decision.GO),
        (Tolerance.AGGRESSIVE, 31, Decision.PAUSE),
    ],
)
def test_tolerance_only_adds_pauses(tolerance: Tolerance, score: int, decision: Decision) -> None:
    policy = Policy(tolerance=tolerance, scores=(FixedScore(pattern="*", score=score),))
    assert verdict(policy).decision is decision


def test_highest_of_the_policys_own_scores_counts() -> None:
    policy = Policy(scores=(FixedScore(pattern="read*", score=10), FixedScore(pattern="*manual", score=70)))
    assert verdict(policy).score == 70


def test_fault_inside_pauses() -> None:
    said = evaluate(Policy(), Intended(None))  # type: ignore[arg-type]
    assert (said.decision, said.stage) == (Decision.PAUSE, Stage.FAULT)


def test_hint_that_is_too_long_pauses() -> None:
    assert verdict(Policy(auto_approve=("*",)), "read " * 2000).stage is Stage.FAULT


@pytest.mark.parametrize("name", TEMPLATES)
def test_templates_stop_what_nobody_wants(name: str) -> None:
    assert verdict(TEMPLATES[name], "please drop table users").decision is Decision.STOP


@pytest.mark.parametrize("mode", [Mode.MONITORING, Mode.LOGGING, Mode.DISABLED])
def test_other_modes_hold_nobody(mode: Mode) -> None:
    said = directive(mode, verdict(None, "drop table users"))
    assert said["continue"] is True and "stopped" not in said and f"Mode: {mode}." in said["factors"]


def test_monitoring_names_what_it_would_have_done() -> None:
    assert directive(Mode.MONITORING, verdict(None, "drop table users"))["nextStepRisk"] == "danger_zone"


def test_stop_says_so() -> None:
    said = directive(Mode.ENFORCING, verdict(None, "drop table users"))
    assert said["continue"] is False and said["stopped"] is True and said["reason"]


def test_pause_is_no_stop() -> None:
    assert "stopped" not in directive(Mode.ENFORCING, verdict(None, "update it"))


@pytest.mark.parametrize(
    ("pattern", "text", "matches"),
    [
        ("git push*", "git push\norigin", True),
        ("git push*", "executing: git push", False),
        ("*git push*", "executing: git push", True),
        ("GIT*", "git x", True),
        ("a?c", "abc", True),
        ("a?c", "ac", False),
        ("*", "", True),
        ("", "a", False),
        ("a*a", "a", False),
        ("*a*b", "xaxbxb", True),
        ("[ab]", "a", False),
        ("a.c", "abc", False),
        ("ab*ba", "aba", False),
        ("*a?c?*", "aaxabcd", True),
        ("*a?c?*", "aaxabc", False),
    ],
)
def test_glob(pattern: str, text: str, matches: bool) -> None:
    assert compile_glob(pattern).matches(canonical_text(text)) is matches


@given(st.text(alphabet="ab*?", max_size=8), st.text(alphabet="ab", max_size=10))
def test_glob_agrees_with_the_plain_definition(pattern: str, text: str) -> None:
    def plain(rest: str, left: str) -> bool:
        if not rest:
            return not left
        if rest[0] == "*":
            return plain(rest[1:], left) or bool(left and plain(rest, left[1:]))
        return bool(left and rest[0] in ("?", left[0]) and plain(rest[1:], left[1:]))

    assert compile_glob(pattern).matches(text) is plain(pattern, text)


@pytest.mark.parametrize("pattern", ["*a" * 40 + "b", "*" + "?a" * 200 + "b*c", "*?a?a" * 90 + "b*c"])
def test_adversarial_patterns_are_linear(pattern: str) -> None:
    text = "a" * 8000
    began = time.perf_counter()
    for _ in range(20):
        compile_glob(pattern).matches(text + "b")
        compile_glob(pattern).matches(text + "xbxc")
    assert time.perf_counter() - began < 10


def test_first_pattern_of_the_list_is_named() -> None:
    assert first_match(("x*", "r*", "*"), ("read",)) == "r*"
