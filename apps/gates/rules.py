"""Predicates, expectations and escalations (spec 5.5.2, contract silas 5.2). Pure.

Every unclear case blocks.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Any, NamedTuple

import regex as patterns

from apps.gates.enums import EscalationKind, GateAction, GateCode, GateType
from apps.gates.schemas import EscalationSpec, Expectation, GateSpec, Range
from kernel.stored_texts import stored_text

# A longer text is not checked in pieces: the gate blocks.
MAX_TEXT = 50_000
# Tenants write patterns, visitors write texts, and all share the process, so no search may take longer.
PATTERN_SECONDS = 0.1

# Form of a script's key that may be written to the audit log.
_KEY = re.compile(r"[\w.-]{1,60}")
ALLOWED_MUTATIONS = frozenset({"response", "message", "tool_args"})

BUILTIN_ESCALATIONS: Mapping[str, EscalationSpec] = {
    "polite_redirect": EscalationSpec(
        action=EscalationKind.RESPOND, message="I can't help with that. How else can I assist you?"
    ),
    "report": EscalationSpec(action=EscalationKind.REPORT),
    "escalate_human": EscalationSpec(action=EscalationKind.ESCALATE_HUMAN),
    "suppress_and_escalate": EscalationSpec(action=EscalationKind.SUPPRESS_AND_ESCALATE, fallback="escalate_human"),
    "suppress_and_rephrase": EscalationSpec(action=EscalationKind.SUPPRESS_AND_REPHRASE, fallback="escalate_human"),
    "retry": EscalationSpec(action=EscalationKind.RETRY, fallback="report"),
}


class Answer(NamedTuple):
    """The result of one predicate; `changed` replaces the value."""

    action: GateAction
    code: GateCode
    reason: str = ""
    changed: object = None


class FileFacts(NamedTuple):
    """Facts about a file, gathered by the caller. A size of None means that it does not exist."""

    permitted: bool
    size: int | None


PASS = Answer(GateAction.CONTINUE, GateCode.PASSED)


def judge(gate: GateSpec, value: object, *, file: FileFacts | None = None) -> Answer:
    """Apply the gate's predicate to the extracted value. `file` only for `file_valid`."""
    if gate.type == GateType.NUMERIC_RANGE:
        return numeric_range(gate, value)
    if gate.type == GateType.STRING_MATCH:
        return string_match(gate, value)
    if gate.type == GateType.REGEX:
        return regex(gate, value)
    if gate.type == GateType.FILE_VALID:
        return file_valid(gate, file)
    if gate.type == GateType.APPROVAL_ALWAYS:
        return Answer(GateAction.REQUIRE_APPROVAL, GateCode.APPROVAL_ALWAYS, stored_text("This always needs approval"))
    return Answer(
        GateAction.BLOCK, GateCode.MISCONFIGURED, stored_text("Unknown condition: {type}").format(type=gate.type)
    )


def numeric_range(gate: GateSpec, value: object) -> Answer:
    """The order is normative (contract silas 6): not a number, hard block, automatic, approval, else block."""
    number = as_number(value)
    if number is None:
        return Answer(GateAction.BLOCK, GateCode.NOT_A_NUMBER, stored_text("Not a number"))
    if gate.block and not gate.block.outside[0] <= number <= gate.block.outside[1]:
        return _clamped(gate, number) or Answer(
            GateAction.BLOCK,
            GateCode.OUT_OF_RANGE,
            stored_text("{number:g} is outside {low:g} to {high:g}").format(
                number=number, low=gate.block.outside[0], high=gate.block.outside[1]
            ),
        )
    if _within(gate.auto_approve, number):
        return PASS
    if _within(gate.require_approval, number):
        return Answer(
            GateAction.REQUIRE_APPROVAL,
            GateCode.NEEDS_APPROVAL,
            stored_text("{number:g} needs approval").format(number=number),
        )
    return Answer(
        GateAction.BLOCK,
        GateCode.OUT_OF_RANGE,
        stored_text("{number:g} is not in an allowed range").format(number=number),
    )


def as_number(value: object) -> float | None:
    """A finite float, or None. Booleans and None are not numbers."""
    if value is None or isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def string_match(gate: GateSpec, value: object) -> Answer:
    text = value if isinstance(value, str) else None
    if text is not None and text in (gate.allowed_values or ()):
        return PASS
    if text is not None and text in (gate.approval_values or ()):
        return Answer(GateAction.REQUIRE_APPROVAL, GateCode.NEEDS_APPROVAL, stored_text("This value needs approval"))
    return Answer(GateAction.BLOCK, GateCode.NOT_ALLOWED, stored_text("This value is not allowed"))


def regex(gate: GateSpec, value: object) -> Answer:
    """Block unless `config.pattern` is found; with `config.redact`, rewrite matches and continue instead. Raises
    `TimeoutError` if a pattern takes too long."""
    if not isinstance(value, str) or len(value) > MAX_TEXT:
        return Answer(GateAction.BLOCK, GateCode.NO_MATCH, stored_text("No text to match"))
    flags = flags_of(gate.config)
    redact = gate.config.get("redact")
    if redact:
        # As plain text: a backslash would name a group of the match.
        words = str(gate.config.get("with", "[removed]")).replace("\\", r"\\")
        rewritten = patterns.sub(redact, words, value, flags=flags, timeout=PATTERN_SECONDS)
        return PASS if rewritten == value else PASS._replace(reason=stored_text("Rewritten"), changed=rewritten)
    pattern = gate.config.get("pattern")
    if not pattern:
        return Answer(GateAction.BLOCK, GateCode.MISCONFIGURED, stored_text("No pattern"))
    matches = patterns.search(pattern, value, flags, timeout=PATTERN_SECONDS) is not None
    return PASS if matches else Answer(GateAction.BLOCK, GateCode.NO_MATCH, stored_text("The text does not match"))


def flags_of(config: Mapping[str, object]) -> int:
    """Regex flags. Patterns are case-sensitive unless `ignore_case` or `case_sensitive: false` is set; `multiline` lets
    ^ and $ match at every line."""
    ignores = config.get("ignore_case") or config.get("case_sensitive") is False
    return int(patterns.IGNORECASE if ignores else 0) | int(patterns.MULTILINE if config.get("multiline") else 0)


def file_valid(gate: GateSpec, file: FileFacts | None) -> Answer:
    if file is None or not file.permitted:
        return Answer(GateAction.BLOCK, GateCode.PATH_FORBIDDEN, stored_text("Path outside the allowed directories"))
    if file.size is None:
        return Answer(GateAction.BLOCK, GateCode.FILE_MISSING, stored_text("File not found"))
    limit = gate.config.get("max_size_bytes")
    if limit is not None and file.size > limit:
        return Answer(GateAction.BLOCK, GateCode.FILE_TOO_LARGE, stored_text("File too large"))
    return PASS


def is_permitted_path(path: object) -> bool:
    """Whether the path stays within its directory by its form, checked before any file access (contract silas 5.2)."""
    return isinstance(path, str) and bool(path) and "\0" not in path and ".." not in PurePosixPath(path).parts


def meets(expectation: Expectation, *, output: str, exit_code: int | None, file_exists: bool = False) -> bool:
    """Whether a finished command meets an expectation, less one trailing newline of `output` (contract silas 5.2).

    `file_exists` is the caller's check of the path named there. Without an exit code no expectation is met.
    """
    text = output.removesuffix("\n")
    if exit_code is None:
        return False
    if expectation.exit_code is not None:
        return exit_code == expectation.exit_code
    if expectation.equals is not None:
        return text == expectation.equals
    if expectation.contains is not None:
        return expectation.contains in text
    if expectation.regex is not None:
        return _matches(expectation.regex, text)
    if expectation.file_exists is not None:
        return file_exists and is_permitted_path(expectation.file_exists)
    if expectation.not_empty:
        return bool(text.strip())
    return _meets_number(expectation, as_number(text.strip()))


def _matches(pattern: str, text: str) -> bool:
    try:
        return patterns.search(pattern, text, timeout=PATTERN_SECONDS) is not None
    except TimeoutError:
        return False


def escalation_for(name: str, escalations: Mapping[str, EscalationSpec]) -> tuple[EscalationSpec, bool]:
    """The escalation from the active goal, else a built-in one, else `report`; and whether the name is known."""
    known = escalations.get(name) or BUILTIN_ESCALATIONS.get(name)
    return known or BUILTIN_ESCALATIONS["report"], known is not None


def escalation_chain(name: str, escalations: Mapping[str, EscalationSpec]) -> tuple[tuple[str, EscalationSpec], ...]:
    """The escalation and its fallbacks in order, with their names. A cycle ends before it repeats."""
    steps: dict[str, EscalationSpec] = {}
    while name and name not in steps:
        steps[name], _ = escalation_for(name, escalations)
        name = steps[name].fallback or ""
    return tuple(steps.items())


def escalation_steps(name: str, escalations: Mapping[str, EscalationSpec]) -> tuple[EscalationSpec, ...]:
    """`escalation_chain` without the names."""
    return tuple(spec for _, spec in escalation_chain(name, escalations))


def split_mutations(changes: Mapping[str, object]) -> tuple[dict[str, object], tuple[str, ...]]:
    """The changes that may be merged, and the names of those that may not.

    `tool_args` must be a mapping, others text.
    """
    kept = {
        name: value for name, value in changes.items() if name in ALLOWED_MUTATIONS and _has_valid_type(name, value)
    }
    dropped = (str(name) for name in changes if name not in kept)
    return kept, tuple(sorted(name if _KEY.fullmatch(name) else "unspeakable" for name in dropped))


def merge(context: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, object]:
    """Apply changes: `tool_args` are merged shallowly, `response` and `message` are replaced (contract silas 6)."""
    merged = {**context, **changes}
    if "tool_args" in changes:
        merged["tool_args"] = {**(context.get("tool_args") or {}), **changes["tool_args"]}
    return merged


def lookup(context: Mapping[str, object], name: str) -> object:
    """The value that a gate names: from the tool's arguments, then from script values, then from the context.
    `tool_name` is never taken from the arguments, because a model chooses those."""
    if name == "tool_name":
        return context.get(name)
    for source in (context.get("tool_args"), context.get("values"), context):
        if isinstance(source, Mapping) and name in source:
            return source[name]
    return None


def _has_valid_type(name: str, value: object) -> bool:
    return isinstance(value, Mapping) if name == "tool_args" else isinstance(value, str)


def _within(allowed: Range | None, number: float) -> bool:
    return allowed is not None and allowed.min <= number <= allowed.max


def _clamped(gate: GateSpec, number: float) -> Answer | None:
    """With `config.clamp`, replace the value by its nearest bound if that needs no approval (spec 5.5.2)."""
    if not gate.config.get("clamp") or not gate.block:
        return None
    low, high = gate.block.outside
    nearest = min(max(number, low), high)
    return PASS._replace(reason="Clamped", changed=nearest) if _within(gate.auto_approve, nearest) else None


def _meets_number(expectation: Expectation, number: float | None) -> bool:
    if number is None:
        return False
    if expectation.output_lt is not None:
        return number < expectation.output_lt
    return expectation.output_gt is not None and number > expectation.output_gt


def _pair(low: float, high: float) -> str:
    return f"{low:g} to {high:g}"
