"""Word a tool's result in plain sentences: its own `say`, else field by field; nothing is added. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

_LENGTH = 1500
_ROWS = 5


def describe_result(result: object) -> str:
    """Plain text of a JSON result; empty when there is nothing in it."""
    return _say(_decode(result))[:_LENGTH].strip()


def failure_of(result: object) -> str | None:
    """Return why a call failed: a sentence that its tool wrote for the customer, "" for any other failure or refusal,
    None when it did not fail. The harness answers a failed call with `failed` or `refused`, and `reason`."""
    match _decode(result):
        case {"failed": "refused_by_tool", "reason": str(reason)}:
            return reason
        case {"failed": str(), "reason": str()} | {"refused": str(), "reason": str()}:
            return ""
    return None


def _decode(result: object) -> object:
    """A tool may hand its JSON over as text."""
    if isinstance(result, str) and result.lstrip()[:1] in ("{", "["):
        try:
            return json.loads(result)
        except (ValueError, RecursionError):
            return result
    return result


def _say(result: object) -> str:
    match result:
        case {"say": str(sentence)}:
            return sentence
        case Mapping():
            return " ".join(
                f"{_label(key)}: {_value(value)}." for key, value in result.items() if _is_shown(key, value)
            )
        case str():
            return result
        case Sequence():
            return _rows(result)
        case None:
            return ""
        case _:
            return f"The answer is {_value(result)}."


def _rows(rows: Sequence[object]) -> str:
    lines = "\n".join(f"- {_value(row)}" for row in rows[:_ROWS])
    more = f"\n(and {len(rows) - _ROWS} more)" if len(rows) > _ROWS else ""
    return lines + more


def _value(value: object) -> str:
    match value:
        case bool():
            return "yes" if value else "no"
        case Mapping():
            return ", ".join(
                f"{_label(key).lower()} {_value(part)}" for key, part in value.items() if _is_shown(key, part)
            )
        case str():
            return value.rstrip(".")
        case Sequence():
            return ", ".join(_value(part) for part in value[:_ROWS]) or "none"
        case _:
            return str(value)


def _is_shown(key: object, value: object) -> bool:
    return not str(key).startswith("_") and value is not None and value != ""


def _label(key: object) -> str:
    words = str(key).replace("_", " ").strip()
    return words[:1].upper() + words[1:]
