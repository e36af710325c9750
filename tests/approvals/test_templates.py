"""A child's text against its goal's template: no hole lets anything else in, and the time grows with the length."""

from __future__ import annotations

import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.approvals.rules import follows_template

# The same language as one backtracking pattern, which is only fit for texts of a few characters.
_HOLE = re.compile(r'"\$[a-z_]+"|\$[a-z_]+')
_SCALAR = r'(?:"(?:[^"\\`\x00-\x1f]|\\["\\/bfnrt]|\\u[0-9a-f]{4})*"|-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?|true|false|null)'
_PROSE = r"(?:(?!```).)*"


def matches_slowly(template: str, body: str) -> bool:
    holes = [_SCALAR if hole.startswith('"') else _PROSE for hole in _HOLE.findall(template)]
    texts = [re.escape(text) for text in _HOLE.split(template)]
    pattern = "".join(text + hole for text, hole in zip(texts, [*holes, ""], strict=True))
    return re.fullmatch(pattern, body, flags=re.DOTALL) is not None


PIECES = st.lists(st.sampled_from(["$a", '"$a"', "```", "\n", "x", '{"k": ', "}", "1"]), max_size=6)
TEXTS = st.lists(st.sampled_from(["`", "```", '"', "\\", "x", "1", "-0.5", "true", "\n", '{"k": ', "}"]), max_size=8)


@given(PIECES.map("".join), TEXTS.map("".join))
def test_text_that_follows_is_one_that_the_pattern_lets_through(template: str, body: str) -> None:
    if follows_template(template, body):
        assert matches_slowly(template, body)


@given(st.lists(st.sampled_from(["$a", "x", "```", " y"]), max_size=6).map("".join), TEXTS.map("".join))
def test_template_of_prose_lets_through_what_the_pattern_does(template: str, body: str) -> None:
    assert follows_template(template, body) == matches_slowly(template, body)


@pytest.mark.parametrize(
    ("template", "body", "follows"),
    [
        ("", "", True),
        ("", "x", False),
        ("$a", "", True),
        ("$a and $b", "x and y and z", True),
        ("$a\n```call\n", "x\n```call\n", True),
        ("$a\n```call\n", "x\n```call\n{}\n```call\n", False),
        ('{"k": "$a"}', '{"k": -1.5}', True),
        ('{"k": "$a"}', '{"k": "a \\" b"}', True),
        ('{"k": "$a"}', '{"k": "a", "l": "b"}', False),
        ('{"k": "$a"}', '{"k": "a`"}', False),
        ('{"k": "$a"}', '{"k": 01}', False),
        ('{"k": "$a"}', '{"k": 1e5}', False),
        ('$a {"k": "$b"} $c', 'x "1" {"k": "2"} y', True),
    ],
)
def test_text_follows_its_template(template: str, body: str, follows: bool) -> None:
    assert follows_template(template, body) is follows


def seconds(template: str, body: str) -> float:
    """Of this thread's processor: the best of three."""
    best = float("inf")
    for _ in range(3):
        began = time.thread_time()
        follows_template(template, body)
        best = min(best, time.thread_time() - began)
    return best


@pytest.mark.parametrize("template", ["$a $b $c $d", '$a"$b"$c"$d"$e', "$a x $b x $c!", '{"k": "$a", "l": "$b"} $c!'])
@pytest.mark.parametrize("fragment", [" ", "x ", '"', '\\"', "1", "1.", "`", "``x", '"x" ', " x\n", '{"k": '])
def test_text_of_twice_the_length_takes_twice_the_time(template: str, fragment: str) -> None:
    long, longer = fragment * (20_000 // len(fragment)), fragment * (40_000 // len(fragment))
    assert seconds(template, longer + "```") < 3 * seconds(template, long + "```") + 0.02
    assert seconds(template, longer + "```") < 2
