"""Fill a goal's task template with typed values, and read the values back (spec 5.2.3).

Pure and linear. An argument of the template's one call is a constant or the placeholder `"$name"` for one scalar;
`$failed_checks` in its prose is a placeholder for one line. No value can open, close or add a call: the result is
parsed again by the parser that runs it and must contain exactly the one call.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from kernel.canonical import canonical_json
from kernel.error_codes import ErrorCode
from kernel.errors import SilasError
from kernel.language import gettext
from kernel.unicode_safety import has_hidden_characters
from llm.calls import PlannedCall, parse_calls

FAILED_CHECKS = "$failed_checks"
MAX_FAILURE_CHARS = 4000
_PLACE = re.compile(r'"\$([a-z_]+)"|\$failed_checks')
_FENCE_MARKS = re.compile("`+|~~~+")
_MARK = "\x00"


@dataclass(frozen=True)
class TemplateValues:
    """Typed values for one use of a template: all arguments of its call, and the failed checks as one line."""

    args: Mapping[str, Any] = field(default_factory=dict)
    failed_checks: str = ""


def template_call(template: str) -> PlannedCall:
    """Return the one call of a goal's template; each argument is a constant or exactly the placeholder "$name".

    Raises `SilasError("bad_template")`: an author's mistake, reported when the goal is adopted and never at run time.
    """
    calls = parse_calls(template)
    if len(calls) != 1:
        raise SilasError(ErrorCode.BAD_TEMPLATE, gettext("A goal's template holds exactly one call."))
    for name, value in calls[0].args.items():
        if "$" in str(value) and value != f"${name}":
            raise SilasError(
                ErrorCode.BAD_TEMPLATE,
                gettext("In the template, {name} must be a constant or ${name}.").format(name=name),
            )
    return calls[0]


def fill(template: str, values: TemplateValues) -> str | None:
    """Return the template filled with these values; None if they do not fit it."""
    expected = template_call(template)
    call = PlannedCall(expected.tool, dict(values.args))
    if not _fits(expected, call) or not _is_plain(values):
        return None
    body = _substitute(template, call.args, values.failed_checks)
    # Parsed by what runs it: a value that opened or closed a call would show here (injection).
    return body if parse_calls(body) == (call,) else None


def values_in(template: str, body: str) -> TemplateValues | None:
    """Extract the values with which `body` could have been made from this template; the caller fills them in again to
    verify. None for a body without exactly one readable call."""
    try:
        calls = parse_calls(body)
    except SilasError:
        return None
    if len(calls) != 1:
        return None
    args = calls[0].args
    marked = _substitute(template, args, _MARK)
    places = marked.count(_MARK)
    length = (len(body) - len(marked) + places) // places if places else 0
    start = marked.index(_MARK) if places else 0
    return TemplateValues(args, body[start : start + max(length, 0)])


def one_line(text: str) -> str:
    """Make a text safe for a template: one line, without fence marks, at most `MAX_FAILURE_CHARS` characters."""
    line = "".join(character if character.isprintable() else " " for character in text)
    return _FENCE_MARKS.sub("'", line)[:MAX_FAILURE_CHARS]


def _substitute(template: str, args: Mapping[str, object], failed_checks: str) -> str:
    """Replace in a single pass, so that no value is read as another placeholder."""

    def value(place: re.Match[str]) -> str:
        name = place[1]
        if name in args:
            return canonical_json(args[name])
        return place[0].replace(FAILED_CHECKS, failed_checks)

    # `canonical_json` below quotes and escapes a value, so that it stays one value.
    return _PLACE.sub(value, template)


def _fits(template: PlannedCall, call: PlannedCall) -> bool:
    """The call has exactly the template's arguments, and differs only where the template has a placeholder."""
    return set(template.args) == set(call.args) and all(
        (expected == f"${name}" and _is_scalar(call.args[name]))
        or canonical_json(call.args[name]) == canonical_json(expected)
        for name, expected in template.args.items()
    )


def _is_scalar(value: object) -> bool:
    """A single value without fence marks."""
    if isinstance(value, str):
        return not _FENCE_MARKS.search(value) and not has_hidden_characters(value)
    return value is None or isinstance(value, int | float)


def _is_plain(values: TemplateValues) -> bool:
    text = values.failed_checks
    return len(text) <= MAX_FAILURE_CHARS and text.isprintable() and not _FENCE_MARKS.search(text)
