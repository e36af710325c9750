"""Describe a version of a gate and the differences between two versions, field by field, for people. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from django.utils.functional import Promise

from apps.gates.enums import GateTrigger, GateType
from apps.gates.providers import PROVIDERS
from kernel.language import gettext, gettext_lazy

TRIGGERS = {
    GateTrigger.EVERY_USER_MESSAGE: gettext_lazy("On every visitor message"),
    GateTrigger.EVERY_AGENT_RESPONSE: gettext_lazy("On every bot answer"),
    GateTrigger.ON_TOOL_CALL: gettext_lazy("Before a tool is used"),
    GateTrigger.ON_CONTENT: gettext_lazy("On content from tools and documents"),
    GateTrigger.AFTER_STEP: gettext_lazy("After a step of a work item"),
}
PROVIDER_LABELS = {provider.kind: provider.label for provider in PROVIDERS.values()}
TYPES = {
    GateType.REGEX: gettext_lazy("A pattern must be found"),
    GateType.STRING_MATCH: gettext_lazy("One of these values"),
    GateType.NUMERIC_RANGE: gettext_lazy("A number within limits"),
    GateType.CUSTOM_CHECK: gettext_lazy("Keywords, length and other checks"),
    GateType.FILE_VALID: gettext_lazy("A file that exists"),
    GateType.APPROVAL_ALWAYS: gettext_lazy("A person always decides"),
}
ON_BLOCK = {
    "report": gettext_lazy("Answer politely and notify the team"),
    "polite_redirect": gettext_lazy("Answer that the bot can't help with that"),
    "escalate_human": gettext_lazy("Hand over to a person"),
    "suppress_and_rephrase": gettext_lazy("Let the bot answer differently"),
    "suppress_and_escalate": gettext_lazy("Withhold the answer and hand over to a person"),
}
LABELS = {
    "on": gettext_lazy("When"),
    "after_step": gettext_lazy("After which step"),
    "provider": gettext_lazy("Check"),
    "type": gettext_lazy("Condition"),
    "check": gettext_lazy("Detector or script"),
    "extract": gettext_lazy("Value"),
    "auto_approve": gettext_lazy("Allowed"),
    "require_approval": gettext_lazy("Needs approval"),
    "block": gettext_lazy("Never outside"),
    "allowed_values": gettext_lazy("Allowed values"),
    "approval_values": gettext_lazy("Values that need approval"),
    "check_command": gettext_lazy("Command"),
    "check_expect": gettext_lazy("Expected output"),
    "promote_to_policy": gettext_lazy("Model verdict is binding"),
    "on_block": gettext_lazy("If it fails"),
    "order": gettext_lazy("Order"),
}
_WORDS: Mapping[str, Mapping[Any, str | Promise]] = {
    "on": TRIGGERS,
    "provider": PROVIDER_LABELS,
    "type": TYPES,
    "on_block": ON_BLOCK,
}


@dataclass(frozen=True)
class Line:
    """One field of a gate with its label and its value as text."""

    field: str
    label: str
    value: str


@dataclass(frozen=True)
class Difference:
    """One field that differs between two versions."""

    field: str
    label: str
    before: str
    after: str


def lines_of(content: Mapping[str, object], *, order: int) -> list[Line]:
    """The fields and settings of a version, one line each; empty ones are left out."""
    return [line for line in _lines({**content, "order": order}) if line.value]


def differences(
    old: Mapping[str, object], new: Mapping[str, object], *, old_order: int, new_order: int
) -> tuple[Difference, ...]:
    before = {line.field: line for line in lines_of(old, order=old_order)}
    after = {line.field: line for line in lines_of(new, order=new_order)}
    fields = [*after, *(field for field in before if field not in after)]
    pairs = ((field, before.get(field), after.get(field)) for field in fields)
    return tuple(_difference(field, was, now) for field, was, now in pairs if _value_of(was) != _value_of(now))


def _difference(field: str, was: Line | None, now: Line | None) -> Difference:
    label = (now or was or Line(field, field, "")).label
    return Difference(field, label, _value_of(was), _value_of(now))


def _value_of(line: Line | None) -> str:
    return line.value if line else ""


def _lines(content: Mapping[str, object]) -> Iterator[Line]:
    provider = PROVIDERS.get(str(content.get("provider")))
    for field, label in LABELS.items():
        if field == "type" and not (provider and provider.has_condition):
            continue
        if field == "promote_to_policy" and not (provider and provider.asks_model):
            continue
        yield Line(field, str(label), _words(field, content.get(field)))
    settings = content.get("config")
    for name, value in sorted(settings.items()) if isinstance(settings, Mapping) else ():
        yield Line(f"config.{name}", gettext("Setting: {name}").format(name=name), _plain(value))


def _words(field: str, value: object) -> str:
    if field in ("auto_approve", "require_approval") and isinstance(value, Mapping):
        return gettext("{low} to {high}").format(low=_plain(value.get("min")), high=_plain(value.get("max")))
    if field == "block" and isinstance(value, Mapping):
        outside = value.get("outside")
        return gettext("{low} to {high}").format(low=_plain(outside[0]), high=_plain(outside[1])) if outside else ""
    if field == "check_expect" and isinstance(value, Mapping):
        return ", ".join(f"{name}: {_plain(expected)}" for name, expected in value.items() if expected is not None)
    known = _WORDS.get(field, {})
    return str(known[value]) if isinstance(value, str) and value in known else _plain(value)


def _plain(value: object) -> str:
    if value is None or value is False:
        return gettext("No") if value is False else ""
    if isinstance(value, bool):
        return gettext("Yes")
    if isinstance(value, float):
        return f"{value:g}"
    if isinstance(value, list | tuple) and all(isinstance(item, str | int | float) for item in value):
        return ", ".join(map(_plain, value))
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, sort_keys=True)
