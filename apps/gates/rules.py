"""What does policy say about this value? The predicate table, expectations and escalations (spec 5.5.2, contract 5.2).

Nothing here reads a clock, a row or a file. Every unclear case is a block.
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

# Longer text is not looked at piece by piece: a gate that cannot read all of it says no.
MAX_TEXT = 50_000
# Patterns are a tenant's, texts a visitor's, and the process is everybody's: nobody waits longer for one.
PATTERN_SECONDS = 0.1

# A script's key that goes into the audit log must be a word.
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
    """What one predicate says; `changed` replaces the value it looked at."""

    action: GateAction
    code: GateCode
    reason: str = ""
    changed: Any = None


class FileFacts(NamedTuple):
    """What is known of a file, gathered by the caller: None size means that it does not exist."""

    permitted: bool
    size: int | None


PASS = Answer(GateAction.CONTINUE, GateCode.PASSED)


def judge(gate: GateSpec, value: Any, *, file: FileFacts | None = None) -> Answer:
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
        return Answer(GateAction.REQUIRE_APPROVAL, GateCode.APPROVAL_ALWAYS, "This always needs a person's approval")
    return Answer(GateAction.BLOCK, GateCode.MISCONFIGURED, f"No predicate for type {gate.type}")


def numeric_range(gate: GateSpec, value: Any) -> Answer:
    """The order is normative (contract 6): not a number, hard block, automatic, approval, else block."""
    number = as_number(value)
    if number is None:
        return Answer(GateAction.BLOCK, GateCode.NOT_A_NUMBER, "Not a number")
    if gate.block and not gate.block.outside[0] <= number <= gate.block.outside[1]:
        return _clamped(gate, number) or Answer(
            GateAction.BLOCK, GateCode.OUT_OF_RANGE, f"{number:g} is outside {_pair(*gate.block.outside)}"
        )
    if _within(gate.auto_approve, number):
        return PASS
    if _within(gate.require_approval, number):
        return Answer(GateAction.REQUIRE_APPROVAL, GateCode.NEEDS_APPROVAL, f"{number:g} needs a person's approval")
    return Answer(GateAction.BLOCK, GateCode.OUT_OF_RANGE, f"{number:g} is in no permitted range")


def as_number(value: Any) -> float | None:
    """A finite float, or None. Booleans and nothing are not numbers."""
    if value is None or isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def string_match(gate: GateSpec, value: Any) -> Answer:
    text = value if isinstance(value, str) else None
    if text is not None and text in (gate.allowed_values or ()):
        return PASS
    if text is not None and text in (gate.approval_values or ()):
        return Answer(GateAction.REQUIRE_APPROVAL, GateCode.NEEDS_APPROVAL, "This value needs approval")
    return Answer(GateAction.BLOCK, GateCode.NOT_ALLOWED, "Not a permitted value")


def regex(gate: GateSpec, value: Any) -> Answer:
    """`config.pattern` must be found, else block. `config.redact` instead rewrites what it finds and continues. Raises
    `TimeoutError` for a pattern that takes too long over a text."""
    if not isinstance(value, str) or len(value) > MAX_TEXT:
        return Answer(GateAction.BLOCK, GateCode.NO_MATCH, "No text to match")
    flags = flags_of(gate.config)
    redact = gate.config.get("redact")
    if redact:
        words = str(gate.config.get("with", "[removed]")).replace("\\", r"\\")
        rewritten = patterns.sub(redact, words, value, flags=flags, timeout=PATTERN_SECONDS)
        return PASS if rewritten == value else PASS._replace(reason="Rewritten", changed=rewritten)
    pattern = gate.config.get("pattern")
    if not pattern:
        return Answer(GateAction.BLOCK, GateCode.MISCONFIGURED, "No pattern")
    found = patterns.search(pattern, value, flags, timeout=PATTERN_SECONDS) is not None
    return PASS if found else Answer(GateAction.BLOCK, GateCode.NO_MATCH, "The text does not match")


def flags_of(config: Mapping[str, Any]) -> int:
    """Patterns tell capitals apart unless `ignore_case`, or `case_sensitive: false`, says otherwise; `multiline` lets ^
    and $ stand at every line."""
    ignores = config.get("ignore_case") or config.get("case_sensitive") is False
    return int(patterns.IGNORECASE if ignores else 0) | int(patterns.MULTILINE if config.get("multiline") else 0)


def file_valid(gate: GateSpec, file: FileFacts | None) -> Answer:
    if file is None or not file.permitted:
        return Answer(GateAction.BLOCK, GateCode.PATH_FORBIDDEN, "Path outside permitted directories")
    if file.size is None:
        return Answer(GateAction.BLOCK, GateCode.FILE_MISSING, "File not found")
    limit = gate.config.get("max_size_bytes")
    if limit is not None and file.size > limit:
        return Answer(GateAction.BLOCK, GateCode.FILE_TOO_LARGE, "File too large")
    return PASS


def is_permitted_path(path: Any) -> bool:
    """No way out of the directory it is meant for, before anything is looked up (contract 5.2)."""
    return isinstance(path, str) and bool(path) and "\0" not in path and ".." not in PurePosixPath(path).parts


def meets(expectation: Expectation, *, output: str, exit_code: int | None, file_exists: bool = False) -> bool:
    """Does a finished command satisfy it? `output` is stdout; one trailing newline is not part of it (contract 5.2).

    `file_exists` is the caller's finding about the permitted path named there. Without an exit code nothing is met.
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
        return _found_in_time(expectation.regex, text)
    if expectation.file_exists is not None:
        return file_exists and is_permitted_path(expectation.file_exists)
    if expectation.not_empty:
        return bool(text.strip())
    return _meets_number(expectation, as_number(text.strip()))


def _found_in_time(pattern: str, text: str) -> bool:
    try:
        return patterns.search(pattern, text, timeout=PATTERN_SECONDS) is not None
    except TimeoutError:
        return False


def escalation_for(name: str, escalations: Mapping[str, EscalationSpec]) -> tuple[EscalationSpec, bool]:
    """The active goal's map first, then the built-in ones; an unknown name is `report`, and False, to be noted."""
    known = escalations.get(name) or BUILTIN_ESCALATIONS.get(name)
    return known or BUILTIN_ESCALATIONS["report"], known is not None


def escalation_chain(name: str, escalations: Mapping[str, EscalationSpec]) -> tuple[tuple[str, EscalationSpec], ...]:
    """The escalation and its fallbacks in order, each with its name; a circle ends where it would close."""
    steps: dict[str, EscalationSpec] = {}
    while name and name not in steps:
        steps[name], _ = escalation_for(name, escalations)
        name = steps[name].fallback or ""
    return tuple(steps.items())


def escalation_steps(name: str, escalations: Mapping[str, EscalationSpec]) -> tuple[EscalationSpec, ...]:
    """`escalation_chain` without the names."""
    return tuple(spec for _, spec in escalation_chain(name, escalations))


def split_mutations(changes: Mapping[str, Any]) -> tuple[dict[str, Any], tuple[str, ...]]:
    """What may be merged, and the names of what may not. `tool_args` must be a mapping, the other two text."""
    kept = {name: value for name, value in changes.items() if name in ALLOWED_MUTATIONS and _right_kind(name, value)}
    dropped = (str(name) for name in changes if name not in kept)
    return kept, tuple(sorted(name if _KEY.fullmatch(name) else "unspeakable" for name in dropped))


def merge(context: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """`tool_args` merge shallowly, `response` and `message` replace (contract 6)."""
    merged = {**context, **changes}
    if "tool_args" in changes:
        merged["tool_args"] = {**(context.get("tool_args") or {}), **changes["tool_args"]}
    return merged


def lookup(context: Mapping[str, Any], name: str) -> Any:
    """The value a gate names: a tool argument, then a value a script gave, then the context's own. Which tool is called
    no argument says, whatever it is called: a model chooses those."""
    if name == "tool_name":
        return context.get(name)
    for source in (context.get("tool_args"), context.get("values"), context):
        if isinstance(source, Mapping) and name in source:
            return source[name]
    return None


def _right_kind(name: str, value: Any) -> bool:
    return isinstance(value, Mapping) if name == "tool_args" else isinstance(value, str)


def _within(allowed: Range | None, number: float) -> bool:
    return allowed is not None and allowed.min <= number <= allowed.max


def _clamped(gate: GateSpec, number: float) -> Answer | None:
    """`config.clamp` turns the hard block into its nearest bound, where that bound needs nobody (spec 5.5.2)."""
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
