"""A tenant's pattern is compiled in everybody's process: what would take long there is refused unseen."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from apps.gates.rules import meets
from apps.gates.schemas import Expectation

EVIL = [r"(x+x+)+y", r"^(a+)+$", r"(\w+\s?)+$", r"(a|aa)+$", r"(?:a*)*b", r"(.*)*\d"]


@pytest.mark.parametrize(
    "pattern",
    ["((((a{50}){50}){50}){50}){50}", "(?:a{1000}){1000}", "a" * 2001, "(?:" * 600 + ")" * 600, "(", "a{999999999}"],
    ids=["nested", "twice", "long", "deep", "broken", "huge"],
)
def test_pattern_that_would_take_long_to_compile_is_refused(pattern: str) -> None:
    with pytest.raises(ValidationError):
        Expectation(regex=pattern)


@pytest.mark.parametrize("pattern", [r"\d{4}-\d{2}-\d{2}", r"[0-9a-f]{8}-([0-9a-f]{4}-){3}[0-9a-f]{12}", r"a{0,}b"])
def test_ordinary_pattern_is_accepted(pattern: str) -> None:
    assert Expectation(regex=pattern).regex == pattern


@pytest.mark.parametrize("pattern", EVIL)
def test_pattern_that_backtracks_without_end_is_not_met(pattern: str) -> None:
    assert not meets(Expectation(regex=pattern), output="a" * 50_000 + "!", exit_code=0)
