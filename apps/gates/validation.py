"""Can this gate ever do what it looks like? Asked when a gate is made; the runner blocks on all of it anyway.

A wrong word in a gate must be seen by whoever writes it, not by the visitors it blocks or lets through. Answers are
sentences for that person, by field. Asked by `services.versions` and by forms. Looks at nothing else but whether
guardrails-ai is installed.
"""

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
from kernel.llm.models import is_known

LONGEST_FIELD = 20_000
# What any gate may say of itself: the tools it is about, and how a person is asked.
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
    "guardrails-ai is not installed here: make guardrails installs it, and custom runs the same detectors without it"
)
# A gate of steps asks before anything takes effect (ADR 101); the report is there when everything has.
ASKS_LATE = "a gate of steps that may ask a person names the value it looks at, or always asks"
# The rest of a script's settings is its skill's: which books it reads, what it asks the visitor for.
_SCRIPT = frozenset({"skill", "script", "args_from_env", "records", "match", "ask"})
_LLM = frozenset({"policy", "model", "seconds", "max_tokens"})


def problems_of(gate: GateSpec) -> dict[str, str]:
    """What is wrong with it, by field; empty when it can run."""
    found: dict[str, str] = {}
    for field, problem in _problems(gate):
        found.setdefault(field, problem)
    return found


def require_valid(gate: GateSpec) -> None:
    """Raises 422 `gate_invalid` with what is wrong by field."""
    problems = problems_of(gate)
    if problems:
        first = next(iter(problems.values()))
        raise SilasError("gate_invalid", f"This gate cannot work: {first}", extra={"fields": problems}, status=422)


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
    """What a row cannot hold (NUL, half a character, no number), and what is more than any gate needs."""
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
            yield field, "it holds something that cannot be stored"
            continue
        if "\\u0000" in written:
            yield field, "it holds a character that cannot be stored"
        if len(written) > LONGEST_FIELD:
            yield field, f"it is longer than {LONGEST_FIELD} characters"


def _places(gate: GateSpec) -> Iterator[tuple[str, str]]:
    if "tools" in gate.config:
        if gate.on not in (GateTrigger.ON_TOOL_CALL, GateTrigger.ON_CONTENT):
            yield "config", "tools belong to gates that run on tool calls or on content"
        yield from _words(gate.config, "tools")
    if gate.on == GateTrigger.ON_CONTENT and gate.provider in (GateProvider.SCRIPT, GateProvider.LLM):
        yield "provider", "content is looked at by rules and detectors only"
    if not isinstance(gate.config.get("standing_approval_counts", False), bool):
        yield "config", "standing_approval_counts is true or false"
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
        yield "allowed_values", "say which values are allowed"
    elif gate.type == GateType.REGEX and not (gate.config.get("pattern") or gate.config.get("redact")):
        yield "config", "say which pattern has to be found, or what is redacted"
    elif gate.type == GateType.CUSTOM_CHECK and not (TEXT_SETTINGS | {"pattern"}) & set(gate.config):
        yield "config", "say what is asked of the text"
    elif gate.type == GateType.FILE_VALID:
        yield from _files(gate)
    yield from _text_settings(gate.config)


def _ranges(gate: GateSpec) -> Iterator[tuple[str, str]]:
    if not (gate.auto_approve or gate.require_approval):
        yield "auto_approve", "say which numbers are allowed"
    for field in ("auto_approve", "require_approval"):
        given: Range | None = getattr(gate, field)
        if given is not None:
            yield from _pair(field, given.min, given.max)
    if gate.block is not None:
        yield from _pair("block", *gate.block.outside)
    if not isinstance(gate.config.get("clamp", False), bool):
        yield "config", "clamp is true or false"


def _pair(field: str, low: float, high: float) -> Iterator[tuple[str, str]]:
    if not (math.isfinite(low) and math.isfinite(high)):
        yield field, "a range ends at numbers"
    elif low > high:
        yield field, f"{low:g} to {high:g} is no range: the smaller number comes first"


def _files(gate: GateSpec) -> Iterator[tuple[str, str]]:
    roots = gate.config.get("roots")
    if not isinstance(roots, list) or not roots or not all(_is_root(root) for root in roots):
        yield "config", "roots are whole paths of the permitted directories"
    if not gate.extract:
        yield "extract", "say which value is the path"
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
            yield "config", f"{name} is true or false"
    yield from _nested(config, depth)


def _nested(config: Mapping[str, Any], depth: int) -> Iterator[tuple[str, str]]:
    inner = config.get("predicates")
    if config.get("logic", "and") not in ("and", "or"):
        yield "config", "logic is and, or or"
    if inner is None:
        if "logic" in config:
            yield "config", "logic is about predicates, and there are none"
        return
    if not isinstance(inner, list) or not 1 <= len(inner) <= MAX_NESTED or depth >= MAX_DEPTH:
        yield "config", f"predicates are a list of up to {MAX_NESTED}, and {MAX_DEPTH} deep at most"
        return
    for each in inner:
        yield from _inner(each, depth)


def _inner(each: Any, depth: int) -> Iterator[tuple[str, str]]:
    if not isinstance(each, dict) or not each:
        yield "config", "a predicate says what it asks"
        return
    yield from _only(each, TEXT_SETTINGS | _PATTERNED)
    try:
        require_pattern(each.get("pattern"))
    except ValueError as wrong:
        yield "config", str(wrong)
    yield from _text_settings(each, depth + 1)


def _script(gate: GateSpec) -> Iterator[tuple[str, str]]:
    yield from _only(gate.config, _SCRIPT)
    script = gate.config.get("script") or gate.check
    if gate.check_command:
        try:
            shlex.split(gate.check_command)
        except ValueError:
            yield "check_command", "a quotation mark is missing"
    elif not isinstance(script, str) or not script or PurePosixPath(script).is_absolute() or ".." in script:
        yield "config", "say which script of the skill is run"
    names = gate.config.get("args_from_env") or []
    if not isinstance(names, list) or not all(isinstance(n, str) and _ENVIRONMENT.fullmatch(n) for n in names):
        yield "config", "args_from_env is a list of names such as CUSTOMER_NAME"


def _llm(gate: GateSpec) -> Iterator[tuple[str, str]]:
    yield from _only(gate.config, _LLM)
    policy, model = gate.config.get("policy"), gate.config.get("model")
    if not isinstance(policy, str) or not policy.strip() or len(policy) > LONGEST_POLICY:
        yield "config", f"policy says what the model judges, in up to {LONGEST_POLICY} characters"
    if model is not None and not (isinstance(model, str) and is_known(model)):
        yield "config", "model is a model of this installation, such as openai:NAME"
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
    strange = sorted(map(str, set(config) - known - _ANY))
    if strange:
        yield "config", f"no such setting here: {', '.join(strange)[:80]}"


def _words(config: Mapping[str, Any], name: str) -> Iterator[tuple[str, str]]:
    words = config[name]
    fine = isinstance(words, list) and 1 <= len(words) <= MAX_WORDS
    if not fine or not all(isinstance(word, str) and 0 < len(word.strip()) <= MAX_WORD for word in words):
        yield "config", f"{name} is a list of up to {MAX_WORDS} words"


def _whole(config: Mapping[str, Any], name: str, *, least: int = 0, most: int = 10**9) -> Iterator[tuple[str, str]]:
    if not _is_whole(config[name]) or not least <= config[name] <= most:
        yield "config", f"{name} is a whole number from {least} to {most}"


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
