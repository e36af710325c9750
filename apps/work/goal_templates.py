"""The template of what a goal may start by itself: filled with typed values, and the values read back (spec 5.2.3).

Pure and linear. An argument of the template's one call is a constant or the place `"$name"` for one scalar;
`$failed_checks` in its prose is a place for one line. No value opens, closes or adds a call: what was filled is read
again by the parser that runs it, and has exactly the one call.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from kernel.canonical import canonical_json
from kernel.errors import SilasError
from kernel.llm.calls import PlannedCall, parse_calls
from kernel.unicode_safety import has_hidden_characters

FAILED_CHECKS = "$failed_checks"
MAX_FAILURE_CHARS = 4000
_PLACE = re.compile(r'"\$([a-z_]+)"|\$failed_checks')
_FENCE_MARKS = re.compile("`+|~~~+")
_MARK = "\x00"


@dataclass(frozen=True)
class TemplateValues:
    """The typed values of one use of a template: all arguments of its call, and what failed as one line of prose."""

    args: Mapping[str, Any] = field(default_factory=dict)
    told: str = ""


def template_call(template: str) -> PlannedCall:
    """The one call of a goal's template; each argument is a constant or the placeholder "$name" alone.

    Raises `SilasError("bad_template")`: an author's mistake, found when the goal is adopted and never at run time.
    """
    calls = parse_calls(template)
    if len(calls) != 1:
        raise SilasError("bad_template", "A goal's template holds exactly one call.")
    for name, value in calls[0].args.items():
        if "$" in str(value) and value != f"${name}":
            raise SilasError("bad_template", f"In the template, {name} must be a constant or ${name}.")
    return calls[0]


def fill(template: str, filling: TemplateValues) -> str | None:
    """The template with these values in their places; None where they do not fit it."""
    expected = template_call(template)
    call = PlannedCall(expected.tool, dict(filling.args))
    if not _fits(expected, call) or not _is_plain(filling):
        return None
    body = _put(template, call.args, filling.told)
    return body if parse_calls(body) == (call,) else None


def values_in(template: str, body: str) -> TemplateValues | None:
    """The values that `body` would have to be made of, if it was made of this template; whether it was shows when they
    are filled in again. None for a body without exactly one readable call."""
    try:
        calls = parse_calls(body)
    except SilasError:
        return None
    if len(calls) != 1:
        return None
    args = calls[0].args
    marked = _put(template, args, _MARK)
    places = marked.count(_MARK)
    length = (len(body) - len(marked) + places) // places if places else 0
    start = marked.index(_MARK) if places else 0
    return TemplateValues(args, body[start : start + max(length, 0)])


def one_line(text: str) -> str:
    """The text as prose that may stand in a template: one line, no marks of a fence, at most `MOST_TOLD` characters."""
    line = "".join(each if each.isprintable() else " " for each in text)
    return _FENCE_MARKS.sub("'", line)[:MAX_FAILURE_CHARS]


def _put(template: str, args: Mapping[str, Any], told: str) -> str:
    """One pass, so that no value is read as the place of another."""

    def value(place: re.Match[str]) -> str:
        name = place[1]
        if name in args:
            return canonical_json(args[name])
        return place[0].replace(FAILED_CHECKS, told)

    return _PLACE.sub(value, template)


def _fits(template: PlannedCall, call: PlannedCall) -> bool:
    """The call has exactly the template's arguments, and other values only where the template leaves a place."""
    return set(template.args) == set(call.args) and all(
        (expected == f"${name}" and _is_scalar(call.args[name]))
        or canonical_json(call.args[name]) == canonical_json(expected)
        for name, expected in template.args.items()
    )


def _is_scalar(value: Any) -> bool:
    """One value without a mark of a fence in it."""
    if isinstance(value, str):
        return not _FENCE_MARKS.search(value) and not has_hidden_characters(value)
    return value is None or isinstance(value, int | float)


def _is_plain(filling: TemplateValues) -> bool:
    told = filling.told
    return len(told) <= MAX_FAILURE_CHARS and told.isprintable() and not _FENCE_MARKS.search(told)
