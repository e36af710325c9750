"""What is different between two versions of a gate? Field by field, in words that people read. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from apps.gates.enums import GateProvider, GateTrigger, GateType

TRIGGERS = {
    GateTrigger.EVERY_USER_MESSAGE: "On every message of a visitor",
    GateTrigger.EVERY_AGENT_RESPONSE: "On every answer of the bot",
    GateTrigger.ON_TOOL_CALL: "Before a tool is used",
    GateTrigger.ON_CONTENT: "On what tools and documents bring in",
    GateTrigger.AFTER_STEP: "After a step of a piece of work",
}
PROVIDERS = {
    GateProvider.PREDICATE: "A rule",
    GateProvider.CUSTOM: "A detector",
    GateProvider.SCRIPT: "A script of a skill",
    GateProvider.LLM: "A model",
    GateProvider.GUARDRAILS_AI: "A detector, run by guardrails-ai",
}
TYPES = {
    GateType.REGEX: "A pattern must be found",
    GateType.STRING_MATCH: "One of these values",
    GateType.NUMERIC_RANGE: "A number within limits",
    GateType.CUSTOM_CHECK: "Words, lengths and other checks",
    GateType.FILE_VALID: "A file that is there",
    GateType.APPROVAL_ALWAYS: "A person always decides",
}
LABELS = {
    "on": "When",
    "after_step": "After which step",
    "provider": "Who looks",
    "type": "What is asked",
    "check": "Detector or script",
    "extract": "Which value",
    "auto_approve": "Allowed",
    "require_approval": "A person decides",
    "block": "Never outside",
    "allowed_values": "Allowed values",
    "approval_values": "Values a person decides",
    "check_command": "Command",
    "check_expect": "What it must print",
    "promote_to_policy": "A model's no is binding",
    "on_block": "What follows a no",
    "order": "Place in the order",
}
_WORDS: Mapping[str, Mapping[Any, str]] = {"on": TRIGGERS, "provider": PROVIDERS, "type": TYPES}
# Where `type` says nothing: who looks is not a rule.
_RULES = (GateProvider.PREDICATE, GateProvider.SCRIPT)


@dataclass(frozen=True)
class Line:
    """One field of a gate: what it is called, and what it says, "" for nothing."""

    field: str
    label: str
    said: str


@dataclass(frozen=True)
class Difference:
    """One field that two versions say differently."""

    field: str
    label: str
    before: str
    after: str


def lines_of(content: Mapping[str, Any], *, order: int) -> list[Line]:
    """Everything that a version says, one line a field and one a setting; fields that say nothing are left out."""
    return [line for line in _lines({**content, "order": order}) if line.said]


def differences(
    old: Mapping[str, Any], new: Mapping[str, Any], *, old_order: int, new_order: int
) -> tuple[Difference, ...]:
    before = {line.field: line for line in lines_of(old, order=old_order)}
    after = {line.field: line for line in lines_of(new, order=new_order)}
    fields = [*after, *(field for field in before if field not in after)]
    pairs = ((field, before.get(field), after.get(field)) for field in fields)
    return tuple(_difference(field, was, now) for field, was, now in pairs if _said(was) != _said(now))


def _difference(field: str, was: Line | None, now: Line | None) -> Difference:
    label = (now or was or Line(field, field, "")).label
    return Difference(field, label, _said(was), _said(now))


def _said(line: Line | None) -> str:
    return line.said if line else ""


def _lines(content: Mapping[str, Any]) -> Iterator[Line]:
    for field, label in LABELS.items():
        if field == "type" and content.get("provider") not in _RULES:
            continue
        if field == "promote_to_policy" and content.get("provider") != GateProvider.LLM:
            continue
        yield Line(field, label, _words(field, content.get(field)))
    settings = content.get("config")
    for name, value in sorted(settings.items()) if isinstance(settings, Mapping) else ():
        yield Line(f"config.{name}", f"Setting: {name}", _plain(value))


def _words(field: str, value: Any) -> str:
    if field in ("auto_approve", "require_approval") and isinstance(value, Mapping):
        return f"{_plain(value.get('min'))} to {_plain(value.get('max'))}"
    if field == "block" and isinstance(value, Mapping):
        return " to ".join(_plain(end) for end in value.get("outside") or ())
    if field == "check_expect" and isinstance(value, Mapping):
        return ", ".join(f"{name}: {_plain(said)}" for name, said in value.items() if said is not None)
    known = _WORDS.get(field, {})
    return known[value] if isinstance(value, str) and value in known else _plain(value)


def _plain(value: Any) -> str:
    if value is None or value is False:
        return "no" if value is False else ""
    if isinstance(value, bool):
        return "yes"
    if isinstance(value, float):
        return f"{value:g}"
    if isinstance(value, list | tuple) and all(isinstance(each, str | int | float) for each in value):
        return ", ".join(map(_plain, value))
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, sort_keys=True)
