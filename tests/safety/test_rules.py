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


@pytest.mark.parametrize(
    ("limit", "steps", "decision"),
    [(20, 1, Decision.GO), (3, 3, Decision.GO), (3, 4, Decision.PAUSE), (0, 10_000, Decision.GO)],
)
def test_step_after_the_limit_pauses(limit: int, steps: int, decision: Decision) -> None:
    assert verdict(Policy(max_steps=limit), steps=steps).decision is decision


@pytest.mark.parametrize(
    ("outcome", "decision"),
    [("failure", Decision.PAUSE), ("success", Decision.GO), ("skipped", Decision.GO), ("", Decision.GO)],
)
def test_failed_step_before_pauses(outcome: str, decision: Decision) -> None:
    assert verdict(outcome=outcome).decision is decision


@pytest.mark.parametrize(("limit", "stage"), [(1, Stage.STEP_LIMIT), (3, Stage.OUTCOME)])
def test_first_stage_that_pauses_ends_it(limit: int, stage: Stage) -> None:
    said = verdict(Policy(max_steps=limit, deny=("*drop*",)), "drop it", outcome="failure", steps=2)
    assert said.decision == Decision.PAUSE
    assert said.stage == stage


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
    assert said.decision == decision
    assert said.stage == Stage.PATTERN


def test_denied_action_stops_and_wants_a_code() -> None:
    said = verdict(Policy(deny=("read*",)))
    assert said.verifies
    assert said.tier is Tier.DANGER_ZONE


def test_allowed_pattern_skips_tier_and_tolerance_but_counts_for_nothing_that_hides() -> None:
    assert verdict(Policy(auto_approve=("delete*",)), "delete one user").decision is Decision.GO
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
    assert said.decision == decision
    assert said.verifies == verifies


def test_pause_tells_what_a_person_has_to_do() -> None:
    assert verdict(None, "update the address").reason == "A person has to confirm this action."
    assert verdict(None, "delete the user 5").reason == "A person has to verify this action with a code."


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


@pytest.mark.parametrize("hint", [None, "read " * 2000])
def test_fault_inside_and_a_hint_that_is_too_long_pause(hint: Any) -> None:
    said = verdict(Policy(auto_approve=("*",)), hint)
    assert said.decision == Decision.PAUSE
    assert said.stage == Stage.FAULT


@pytest.mark.parametrize("name", TEMPLATES)
def test_templates_stop_what_nobody_wants(name: str) -> None:
    assert verdict(TEMPLATES[name], "please drop table users").decision is Decision.STOP


@pytest.mark.parametrize("mode", [Mode.MONITORING, Mode.LOGGING, Mode.DISABLED])
def test_other_modes_hold_nobody_and_name_what_they_would_have_done(mode: Mode) -> None:
    said = directive(mode, verdict(None, "drop table users"))
    assert said["continue"] is True
    assert "stopped" not in said
    assert f"Mode: {mode}." in said["factors"]
    assert said["nextStepRisk"] == "danger_zone"


def test_stop_says_so_and_a_pause_is_none() -> None:
    said = directive(Mode.ENFORCING, verdict(None, "drop table users"))
    assert said["continue"] is False
    assert said["stopped"] is True
    assert said["reason"]
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
