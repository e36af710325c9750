"""What each agent sees of a skill, when a skill is available, and what a child inherits from its parent."""

from __future__ import annotations

import pytest

from apps.skills.roles import ActiveSkill, InheritedSkills, Metadata, planner_view, proxy_view, unnamed_manual_skills
from kernel.errors import SilasError


def skill(
    name: str, *, activation: str = "auto", with_: tuple[str, ...] = (), shown: str = "", body: str = ""
) -> ActiveSkill:
    called = (name, shown) if shown else (name,)
    metadata = Metadata(name, f"Use when somebody asks for {name}.")
    return ActiveSkill(f"{name}@0123456789abcdef", metadata, activation, called, with_, body or f"# {name}")


def names(told: tuple[Metadata, ...]) -> list[str]:
    return [each.name for each in told]


# --- the proxy


def test_proxy_is_not_told_of_what_is_there_for_its_instructions_only() -> None:
    told = proxy_view([skill("a"), skill("house-style", activation="background")], budget=1_000)
    assert names(told) == ["a"]


def test_proxy_is_told_of_as_many_as_fit_and_the_last_go_first() -> None:
    every = [skill(f"skill-{at}") for at in range(500)]
    told = proxy_view(every, budget=640)
    assert sum(each.tokens for each in told) <= 640
    assert names(told) == [each.name for each in every[: len(told)]]
    assert 0 < len(told) < 500


def test_short_skill_behind_one_that_does_not_fit_is_not_told_of() -> None:
    long = ActiveSkill("l@0123456789abcdef", Metadata("long", "Use when. " * 90), "auto", ("long",), (), "")
    assert names(proxy_view([skill("a"), long, skill("b")], budget=60)) == ["a"]


# --- activation


@pytest.mark.parametrize(
    ("said", "there"),
    [
        ("please use tax-report for last year", True),
        ("Please use Tax Report.", True),
        ("TAX_REPORT now", True),
        ("I want the Yearly Figures", True),
        ("my tax reporting is late", False),
        ("syntax-report", False),
        ("tax", False),
        ("", False),
    ],
)
def test_manual_skill_is_there_when_a_person_names_it(said: str, *, there: bool) -> None:
    waiting = skill("tax-report", activation="manual", shown="Yearly figures")
    assert (unnamed_manual_skills([waiting], [said]) == frozenset()) is there


def test_nobody_has_to_name_what_says_auto() -> None:
    assert unnamed_manual_skills([skill("a"), skill("b", activation="background")], []) == frozenset()


def test_name_that_holds_no_word_is_never_named() -> None:
    waiting = ActiveSkill("x@0123456789abcdef", Metadata("x", "d"), "manual", ("---",), (), "")
    assert unnamed_manual_skills([waiting], ["--- x ---"]) == {waiting.ref}


# --- the planner


def test_planner_reads_what_was_asked_for_first_then_what_goes_with_it() -> None:
    every = [skill("other"), skill("mate"), skill("asked", with_=("mate", "absent"))]
    told = planner_view(every, wanted={every[2].ref})
    assert [each.name for each in told] == ["asked", "mate", "other"]
    assert told[0].instructions == "# asked\n\nGoes together with: mate."


def test_instructions_that_do_not_fit_are_left_out_whole() -> None:
    every = [skill("a", body="word " * 100), skill("b", body="word " * 5_000), skill("c")]
    assert [each.name for each in planner_view(every, budget=300)] == ["a"]


# --- what is handed down

PARENT = InheritedSkills(
    ("desk@0123456789abcdef", "style@0123456789abcdef", "more@0123456789abcdef"), ("style@0123456789abcdef",)
)


def test_child_has_what_it_calls_and_what_its_parent_knows_beside() -> None:
    assert PARENT.to(["desk@0123456789abcdef"]) == ["desk@0123456789abcdef", "style@0123456789abcdef"]


@pytest.mark.parametrize(
    "ref", ["elsewhere@0123456789abcdef", "desk@ffffffffffffffff", "mcp:erp@0123456789abcdef", "desk"]
)
def test_child_never_has_what_its_parent_has_not(ref: str) -> None:
    with pytest.raises(SilasError) as refused:
        PARENT.to([ref])
    assert refused.value.code == "skill_not_inherited"
