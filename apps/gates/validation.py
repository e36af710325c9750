"""Validate gates when they are written; the runner blocks on an invalid gate anyway.

The author of a gate should see a mistake, not the visitors whom it blocks or lets through. Problems are sentences for
the author, by field. Used by `services.versions` and forms. Depends on nothing else but whether guardrails-ai is
installed."""

from __future__ import annotations

import json
import math
import re
import shlex
from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath
from typing import Any

from apps.gates import guardrails
from apps.gates.detectors.catalogue import InvalidSetting, detect, is_fixing, threshold
from apps.gates.enums import GateProvider, GateTrigger, GateType
from apps.gates.predicates import MAX_DEPTH, TEXT_SETTINGS
from apps.gates.schemas import GateSpec, Range, require_pattern
from kernel.errors import SilasError
from kernel.language import gettext
from llm.models import is_known

LONGEST_FIELD = 20_000
# Settings that any gate may have: its tools, and how approval works.
_ANY = frozenset({"tools", "standing_approval_counts", "wait_seconds"})
# Seconds that a gate may wait for a person.
SHORTEST_WAIT, LONGEST_WAIT = 10, 86_400
MAX_WORDS, MAX_WORD, MAX_NESTED = 100, 80, 8
LONGEST_POLICY, MAX_SECONDS = 2000, 20
_ENVIRONMENT = re.compile(r"[A-Z][A-Z0-9_]{0,59}")
_FLAGS = frozenset({"ignore_case", "case_sensitive", "multiline"})
_PATTERNED = frozenset({"pattern"}) | _FLAGS
_OWN: Mapping[str, frozenset[str]] = {
    GateType.NUMERIC_RANGE: frozenset({"clamp"}),
    GateType.STRING_MATCH: TEXT_SETTINGS | _FLAGS,
    GateType.REGEX: TEXT_SETTINGS | _PATTERNED | {"redact", "with"},
    GateType.CUSTOM_CHECK: TEXT_SETTINGS | _PATTERNED,
    GateType.FILE_VALID: frozenset({"roots", "max_size_bytes"}),
    GateType.APPROVAL_ALWAYS: frozenset(),
}
NOT_INSTALLED = (
    "guardrails-ai is not installed: run make guardrails, or use custom, which runs the same detectors without it"
)
# A step gate asks for approval before anything takes effect (ADR 101); the report exists only afterwards.
ASKS_LATE = "a step gate that may need approval must name the value it checks, or always need approval"
# Besides these, a script has settings of its skill: the records it reads, what it asks the visitor for.
_SCRIPT = frozenset({"skill", "script", "args_from_env", "records", "match", "ask"})
_LLM = frozenset({"policy", "model", "seconds", "max_tokens"})


def problems_of(gate: GateSpec) -> dict[str, str]:
    """Problems of a gate, by field; empty if it is valid."""
    problems: dict[str, str] = {}
    for field, problem in _problems(gate):
        problems.setdefault(field, problem)
    return problems


def require_valid(gate: GateSpec) -> None:
    """Raises 422 `gate_invalid` with what is wrong by field."""
    problems = problems_of(gate)
    if problems:
        first = next(iter(problems.values()))
        raise SilasError(
            "gate_invalid",
            gettext("This gate isn't valid: {first}").format(first=first),
            extra={"fields": problems},
            status=422,
        )


def _problems(gate: GateSpec) -> Iterator[tuple[str, str]]:
    yield from _storable(gate)
    yield from _places(gate)
    if gate.provider == GateProvider.PREDICATE:
        yield from _predicate(gate)
    elif gate.provider == GateProvider.SCRIPT:
        yield from _script(gate)
    elif gate.provider == GateProvider.LLM:
        yield from _llm(gate)
    else:
        yield from _detector(gate)
        if gate.provider == GateProvider.GUARDRAILS_AI and not guardrails.is_installed():
            yield "provider", NOT_INSTALLED


def _storable(gate: GateSpec) -> Iterator[tuple[str, str]]:
    """What a row cannot store (NUL, lone surrogates, NaN), and oversized fields."""
    try:
        fields = gate.to_plan_dict()
    except (ValueError, RecursionError):
        yield "config", "it is nested too deeply"
        return
    for field, value in fields.items():
        try:
            written = json.dumps(value, ensure_ascii=False, allow_nan=False)
            written.encode()
        except (ValueError, TypeError):
            yield field, "it contains a value that can't be stored"
            continue
        if "\\u0000" in written:
            yield field, "it contains a character that can't be stored"
        if len(written) > LONGEST_FIELD:
            yield field, f"it is longer than {LONGEST_FIELD} characters"


def _places(gate: GateSpec) -> Iterator[tuple[str, str]]:
    if "tools" in gate.config:
        if gate.on not in (GateTrigger.ON_TOOL_CALL, GateTrigger.ON_CONTENT):
            yield "config", "tools can only be set for gates that run on tool calls or on content"
        yield from _words(gate.config, "tools")
    if gate.on == GateTrigger.ON_CONTENT and gate.provider in (GateProvider.SCRIPT, GateProvider.LLM):
        yield "provider", "content can only be checked by rules and detectors"
    if not isinstance(gate.config.get("standing_approval_counts", False), bool):
        yield "config", "standing_approval_counts must be true or false"
    if "wait_seconds" in gate.config:
        yield from _whole(gate.config, "wait_seconds", least=SHORTEST_WAIT, most=LONGEST_WAIT)
    if gate.after_step is not None and gate.after_step < 1:
        yield "after_step", "steps are counted from 1"
    if gate.checks_report and gate.may_need_approval:
        yield "extract", ASKS_LATE


def _predicate(gate: GateSpec) -> Iterator[tuple[str, str]]:
    yield from _only(gate.config, _OWN[gate.type])
    if gate.type == GateType.NUMERIC_RANGE:
        yield from _ranges(gate)
    elif gate.type == GateType.STRING_MATCH and not (gate.allowed_values or gate.approval_values):
        yield "allowed_values", "enter the allowed values"
    elif gate.type == GateType.REGEX and not (gate.config.get("pattern") or gate.config.get("redact")):
        yield "config", "enter the pattern that must be found, or what to redact"
    elif gate.type == GateType.CUSTOM_CHECK and not (TEXT_SETTINGS | {"pattern"}) & set(gate.config):
        yield "config", "enter what the text must satisfy"
    elif gate.type == GateType.FILE_VALID:
        yield from _files(gate)
    yield from _text_settings(gate.config)


def _ranges(gate: GateSpec) -> Iterator[tuple[str, str]]:
    if not (gate.auto_approve or gate.require_approval):
        yield "auto_approve", "enter the allowed numbers"
    for field in ("auto_approve", "require_approval"):
        given: Range | None = getattr(gate, field)
        if given is not None:
            yield from _pair(field, given.min, given.max)
    if gate.block is not None:
        yield from _pair("block", *gate.block.outside)
    if not isinstance(gate.config.get("clamp", False), bool):
        yield "config", "clamp must be true or false"


def _pair(field: str, low: float, high: float) -> Iterator[tuple[str, str]]:
    if not (math.isfinite(low) and math.isfinite(high)):
        yield field, "a range must have numbers as bounds"
    elif low > high:
        yield field, f"{low:g} to {high:g} is not a range: enter the smaller number first"


def _files(gate: GateSpec) -> Iterator[tuple[str, str]]:
    roots = gate.config.get("roots")
    if not isinstance(roots, list) or not roots or not all(_is_root(root) for root in roots):
        yield "config", "roots must be absolute paths of the permitted directories"
    if not gate.extract:
        yield "extract", "enter which value is the path"
    if "max_size_bytes" in gate.config:
        yield from _whole(gate.config, "max_size_bytes", least=1)


def _is_root(root: object) -> bool:
    return isinstance(root, str) and PurePosixPath(root).is_absolute() and ".." not in PurePosixPath(root).parts


def _text_settings(config: Mapping[str, Any], depth: int = 0) -> Iterator[tuple[str, str]]:
    for name in ("min_chars", "max_chars", "min_tokens", "max_tokens"):
        if name in config:
            yield from _whole(config, name)
    for least, most in (("min_chars", "max_chars"), ("min_tokens", "max_tokens")):
        if _is_whole(config.get(least)) and _is_whole(config.get(most)) and config[least] > config[most]:
            yield "config", f"{least} is above {most}"
    for name in ("blocked_keywords", "required_keywords"):
        if name in config:
            yield from _words(config, name)
    for name in _FLAGS:
        if not isinstance(config.get(name, False), bool):
            yield "config", f"{name} must be true or false"
    yield from _nested(config, depth)


def _nested(config: Mapping[str, Any], depth: int) -> Iterator[tuple[str, str]]:
    inner = config.get("predicates")
    if config.get("logic", "and") not in ("and", "or"):
        yield "config", "logic must be and, or or"
    if inner is None:
        if "logic" in config:
            yield "config", "logic needs predicates"
        return
    if not isinstance(inner, list) or not 1 <= len(inner) <= MAX_NESTED or depth >= MAX_DEPTH:
        yield "config", f"predicates must be a list of up to {MAX_NESTED}, nested up to {MAX_DEPTH} levels"
        return
    for predicate in inner:
        yield from _inner(predicate, depth)


def _inner(predicate: Any, depth: int) -> Iterator[tuple[str, str]]:
    if not isinstance(predicate, dict) or not predicate:
        yield "config", "a predicate must have settings"
        return
    yield from _only(predicate, TEXT_SETTINGS | _PATTERNED)
    try:
        require_pattern(predicate.get("pattern"))
    except ValueError as wrong:
        yield "config", str(wrong)
    yield from _text_settings(predicate, depth + 1)


def _script(gate: GateSpec) -> Iterator[tuple[str, str]]:
    yield from _only(gate.config, _SCRIPT)
    script = gate.config.get("script") or gate.check
    if gate.check_command:
        try:
            shlex.split(gate.check_command)
        except ValueError:
            yield "check_command", "a quotation mark is missing"
    elif not isinstance(script, str) or not script or PurePosixPath(script).is_absolute() or ".." in script:
        yield "config", "enter which script of the skill to run"
    names = gate.config.get("args_from_env") or []
    if not isinstance(names, list) or not all(isinstance(n, str) and _ENVIRONMENT.fullmatch(n) for n in names):
        yield "config", "args_from_env must be a list of names such as CUSTOMER_NAME"


def _llm(gate: GateSpec) -> Iterator[tuple[str, str]]:
    yield from _only(gate.config, _LLM)
    policy, model = gate.config.get("policy"), gate.config.get("model")
    if not isinstance(policy, str) or not policy.strip() or len(policy) > LONGEST_POLICY:
        yield "config", f"policy must describe what the model judges, in up to {LONGEST_POLICY} characters"
    if model is not None and not (isinstance(model, str) and is_known(model)):
        yield "config", "model must be a model of this installation, such as openai:NAME"
    if "seconds" in gate.config:
        yield from _whole(gate.config, "seconds", least=1, most=MAX_SECONDS)
    if "max_tokens" in gate.config:
        yield from _whole(gate.config, "max_tokens", least=50, most=1000)


def _detector(gate: GateSpec) -> Iterator[tuple[str, str]]:
    try:
        is_fixing(gate.config)
        detect(gate.check or "", "", gate.config)
        threshold(gate.check or "", gate.config)
    except InvalidSetting as wrong:
        yield "check", str(wrong)


def _only(config: Mapping[str, Any], known: frozenset[str]) -> Iterator[tuple[str, str]]:
    unknown = sorted(map(str, set(config) - known - _ANY))
    if unknown:
        yield "config", f"unknown setting: {', '.join(unknown)[:80]}"


def _words(config: Mapping[str, Any], name: str) -> Iterator[tuple[str, str]]:
    words = config[name]
    is_valid = isinstance(words, list) and 1 <= len(words) <= MAX_WORDS
    if not is_valid or not all(isinstance(word, str) and 0 < len(word.strip()) <= MAX_WORD for word in words):
        yield "config", f"{name} must be a list of up to {MAX_WORDS} words"


def _whole(config: Mapping[str, Any], name: str, *, least: int = 0, most: int = 10**9) -> Iterator[tuple[str, str]]:
    if not _is_whole(config[name]) or not least <= config[name] <= most:
        yield "config", f"{name} must be a whole number from {least} to {most}"


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
