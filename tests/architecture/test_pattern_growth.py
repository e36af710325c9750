"""No pattern outside the detectors takes more than twice as long for twice the text, however the text is made.

Patterns are collected from the syntax tree, together with the ways in which their file uses them. Texts repeat what a
pattern itself names: its letters, a member of each of its classes, and pairs of them. Processor time counts.
"""

from __future__ import annotations

import ast
import re
import signal
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import pytest

ROOT = Path(__file__).resolve().parents[2]
ROOMS = ("apps", "kernel", "llm", "sandbox")
# Their own tests count steps (tests/gates/test_detector_work.py).
DETECTORS = ROOT / "apps" / "gates" / "detectors"
METHODS = frozenset({"search", "match", "fullmatch", "finditer", "findall", "sub", "subn", "split"})
LENGTHS = (16, 1_000, 2_000, 4_000, 8_000, 16_000)
MOST_PUMPS, MOST_WORDS = 24, 6
# Less than this is no time to compare; more than so many times as long for twice the text is not linear.
LEAST_SECONDS, MOST_RATIO = 0.02, 3.0
# What took less than this at a quarter of the greatest length would not be noticed there.
UNNOTICED = 0.001
_SAMPLES = {"CATEGORY_DIGIT": "7", "CATEGORY_SPACE": " ", "CATEGORY_WORD": "a"}
_NEGATED = {"CATEGORY_NOT_DIGIT": "a", "CATEGORY_NOT_SPACE": "a", "CATEGORY_NOT_WORD": "-"}


class TooLong(Exception):
    """A pattern was interrupted."""


class Place(NamedTuple):
    """A pattern as written, and how its file uses it."""

    where: str
    pattern: str
    flags: int
    uses: frozenset[str]


def places() -> list[Place]:
    files = sorted(file for room in ROOMS for file in (ROOT / room).rglob("*.py"))
    return [place for file in files if DETECTORS not in file.parents for place in in_file(file)]


def in_file(file: Path) -> Iterator[Place]:
    tree = ast.parse(file.read_text())
    used: dict[str, set[str]] = {}
    named: dict[int, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.attr in METHODS:
            used.setdefault(node.value.id, set()).add(node.attr)
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            named[id(node.value)] = node.targets[0].id
    for node in ast.walk(tree):
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.args):
            continue
        if not (isinstance(node.func.value, ast.Name) and node.func.value.id == "re"):
            continue
        written = node.args[0]
        if not (isinstance(written, ast.Constant) and isinstance(written.value, str)):
            continue
        of_name = used.get(named.get(id(node), ""), set())
        uses = frozenset({node.func.attr}) if node.func.attr in METHODS else frozenset(of_name or {"search"})
        flags = re.IGNORECASE if "IGNORECASE" in ast.dump(node) else 0
        flags |= re.MULTILINE if "MULTILINE" in ast.dump(node) else 0
        flags |= re.DOTALL if "DOTALL" in ast.dump(node) else 0
        flags |= re.VERBOSE if "VERBOSE" in ast.dump(node) else 0
        yield Place(f"{file.relative_to(ROOT)}:{node.lineno}", written.value, flags, uses)


def pumps(pattern: str, flags: int) -> list[str]:
    """What its text may repeat."""
    parser: Any = re._parser  # type: ignore[attr-defined]
    letters = list(dict.fromkeys(_letters(parser.parse(pattern, flags))))
    whole = "".join(letters)
    pairs = [one + other for one in letters[:6] for other in letters[:6] if one != other]
    words = [f"{word} " for word in _words(parser.parse(pattern, flags))]
    plain = islice(dict.fromkeys([*letters, whole, *pairs, " ", "a", "0"]), MOST_PUMPS)
    return list(dict.fromkeys([*plain, *islice(dict.fromkeys(words), MOST_WORDS)]))


def _letters(parsed: Any) -> Iterator[str]:
    """A character for each thing that a pattern can consume, in order."""
    for name, value in parsed:
        match str(name):
            case "LITERAL":
                yield chr(value)
            case "NOT_LITERAL":
                yield "a" if chr(value) != "a" else "b"
            case "ANY":
                yield "x"
            case "IN":
                yield from _members(value)
            case "MAX_REPEAT" | "MIN_REPEAT" | "POSSESSIVE_REPEAT":
                yield from _letters(value[2])
            case "SUBPATTERN":
                yield from _letters(value[3])
            case "ATOMIC_GROUP":
                yield from _letters(value)
            case "BRANCH":
                for branch in value[1]:
                    yield from _letters(branch)
            case "ASSERT" | "ASSERT_NOT":
                yield from _letters(value[1])
            case _:
                continue


def _words(parsed: Any) -> Iterator[str]:
    """The words that stand in a pattern as they are, each a beginning at which it may be tried."""
    word = ""
    for name, value in parsed:
        if str(name) == "LITERAL":
            word += chr(value)
            continue
        if len(word) > 1:
            yield word
        word = ""
        match str(name):
            case "MAX_REPEAT" | "MIN_REPEAT" | "POSSESSIVE_REPEAT":
                yield from _words(value[2])
            case "SUBPATTERN":
                yield from _words(value[3])
            case "ATOMIC_GROUP":
                yield from _words(value)
            case "BRANCH":
                for branch in value[1]:
                    yield from _words(branch)
            case "ASSERT" | "ASSERT_NOT":
                yield from _words(value[1])
            case _:
                continue
    if len(word) > 1:
        yield word


def _members(members: Any) -> Iterator[str]:
    if str(members[0][0]) == "NEGATE":
        kept_out = {chr(value) for name, value in members if str(name) == "LITERAL"}
        yield next(char for char in "a-Z7 .é" if char not in kept_out)
        return
    for name, value in members:
        if str(name) == "LITERAL":
            yield chr(value)
        elif str(name) == "RANGE":
            yield chr(value[0])
        elif str(name) == "CATEGORY":
            yield _SAMPLES.get(str(value)) or _NEGATED.get(str(value)) or "a"


def taken(compiled: re.Pattern[str], use: str, text: str) -> float:
    """Seconds of the processor, the best of three where one takes long enough to be compared."""
    best = float("inf")
    for _ in range(3):
        began = time.process_time()
        if use in {"sub", "subn"}:
            compiled.sub("", text)
        elif use == "finditer":
            any(False for _ in compiled.finditer(text))
        else:
            getattr(compiled, use)(text)
        best = min(best, time.process_time() - began)
        if best < LEAST_SECONDS:
            break
    return best


def grows(place: Place) -> str:
    """The text for which it takes more than its share, or ""."""
    compiled = re.compile(place.pattern, place.flags)
    letters = "".join(dict.fromkeys(_letters(re._parser.parse(place.pattern, place.flags))))[:40]  # type: ignore[attr-defined]
    for use in sorted(place.uses):
        for pump in pumps(place.pattern, place.flags):
            for head, tail in (("", "\x00"), (letters, "\x00")):
                before = 0.0
                for length in LENGTHS:
                    text = head + (pump * (length // len(pump) + 1))[:length] + tail
                    now = taken(compiled, use, text)
                    if now > LEAST_SECONDS and now > MOST_RATIO * before:
                        return f"{use} of {head!r} + {pump!r} * n + {tail!r}: {now * 1000:.0f} ms at {length}"
                    if length * 4 >= LENGTHS[-1] and now < UNNOTICED:
                        break
                    before = now
    return ""


def _ring(*_: Any) -> None:
    raise TooLong


@pytest.fixture(autouse=True)
def _bounded() -> Iterator[None]:
    """A pattern that never comes back is interrupted."""
    before = signal.signal(signal.SIGVTALRM, _ring)
    signal.setitimer(signal.ITIMER_VIRTUAL, 60)
    yield
    signal.setitimer(signal.ITIMER_VIRTUAL, 0)
    signal.signal(signal.SIGVTALRM, before)


PLACES = places()


def test_patterns_are_found() -> None:
    assert len(PLACES) > 100


@pytest.mark.parametrize(
    "pattern", [r"\s+$", r"a.*b.*c", r"<[^>]*>x", r"(?i)(curl|wget)\b[^\n|]*\|\s*(sudo\s+)?(ba|z|da)?sh\b"]
)
def test_slow_pattern_is_noticed(pattern: str) -> None:
    assert grows(Place("here", pattern, 0, frozenset({"search"})))


def test_pattern_that_never_comes_back_is_interrupted() -> None:
    signal.setitimer(signal.ITIMER_VIRTUAL, 2)
    with pytest.raises(TooLong):
        grows(Place("here", r"(a+)+$", 0, frozenset({"search"})))


@pytest.mark.parametrize("place", PLACES, ids=[place.where for place in PLACES])
def test_pattern_takes_time_in_proportion_to_its_text(place: Place) -> None:
    assert grows(place) == ""
