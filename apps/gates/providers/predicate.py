"""A rule on one value: a range, listed values, a pattern, length and keywords, a file, or always a person."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from apps.gates import predicates, rules
from apps.gates.enums import GateProvider, GateType
from apps.gates.predicates import MAX_DEPTH, TEXT_SETTINGS
from apps.gates.providers.base import (
    Provider,
    Request,
    changes_of,
    extract_value,
    result_of,
    stored_value,
)
from apps.gates.schemas import GateResult, GateSpec, Range, require_pattern
from apps.gates.settings_checks import Problems, check_names, check_whole, check_words, is_whole
from kernel.language import gettext, gettext_lazy

MAX_NESTED = 8
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


class Predicate(Provider):
    kind = GateProvider.PREDICATE
    label = gettext_lazy("A rule")
    has_condition = True

    def problems(self, gate: GateSpec) -> Problems:
        yield from check_names(gate.config, _OWN[gate.type])
        if gate.type == GateType.NUMERIC_RANGE:
            yield from _ranges(gate)
        elif gate.type == GateType.STRING_MATCH and not (gate.allowed_values or gate.approval_values):
            yield "allowed_values", gettext("enter the allowed values")
        elif gate.type == GateType.REGEX and not (gate.config.get("pattern") or gate.config.get("redact")):
            yield "config", gettext("enter the pattern that must be found, or what to redact")
        elif gate.type == GateType.CUSTOM_CHECK and not (TEXT_SETTINGS | {"pattern"}) & set(gate.config):
            yield "config", gettext("enter what the text must satisfy")
        elif gate.type == GateType.FILE_VALID:
            yield from _files(gate)
        yield from _text_settings(gate.config)

    def evaluate(self, request: Request) -> GateResult:
        gate = request.gate
        value = extract_value(gate, request.context)
        file = _file_facts(gate, value) if gate.type == GateType.FILE_VALID else None
        answer = predicates.judge(gate, value, file=file)
        changes = None if answer.changed is None else changes_of(gate, answer.changed)
        return result_of(
            gate, answer.action, answer.code, answer.reason, value=stored_value(value), modified_context=changes
        )


def _ranges(gate: GateSpec) -> Problems:
    if not (gate.auto_approve or gate.require_approval):
        yield "auto_approve", gettext("enter the allowed numbers")
    for field in ("auto_approve", "require_approval"):
        given: Range | None = getattr(gate, field)
        if given is not None:
            yield from _pair(field, given.min, given.max)
    if gate.block is not None:
        yield from _pair("block", *gate.block.outside)
    if not isinstance(gate.config.get("clamp", False), bool):
        yield "config", gettext("{name} must be true or false").format(name="clamp")


def _pair(field: str, low: float, high: float) -> Problems:
    if not (math.isfinite(low) and math.isfinite(high)):
        yield field, gettext("a range must have numbers as bounds")
    elif low > high:
        yield (
            field,
            gettext("{low} to {high} is not a range: enter the smaller number first").format(
                low=f"{low:g}", high=f"{high:g}"
            ),
        )


def _files(gate: GateSpec) -> Problems:
    roots = gate.config.get("roots")
    if not isinstance(roots, list) or not roots or not all(_is_root(root) for root in roots):
        yield "config", gettext("roots must be absolute paths of the permitted directories")
    if not gate.extract:
        yield "extract", gettext("enter which value is the path")
    if "max_size_bytes" in gate.config:
        yield from check_whole(gate.config, "max_size_bytes", least=1)


def _is_root(root: object) -> bool:
    return isinstance(root, str) and PurePosixPath(root).is_absolute() and ".." not in PurePosixPath(root).parts


def _text_settings(config: Mapping[str, Any], depth: int = 0) -> Problems:
    for name in ("min_chars", "max_chars", "min_tokens", "max_tokens"):
        if name in config:
            yield from check_whole(config, name)
    for least, most in (("min_chars", "max_chars"), ("min_tokens", "max_tokens")):
        if is_whole(config.get(least)) and is_whole(config.get(most)) and config[least] > config[most]:
            yield "config", gettext("{least} is above {most}").format(least=least, most=most)
    for name in ("blocked_keywords", "required_keywords"):
        if name in config:
            yield from check_words(config, name)
    for name in _FLAGS:
        if not isinstance(config.get(name, False), bool):
            yield "config", gettext("{name} must be true or false").format(name=name)
    yield from _nested(config, depth)


def _nested(config: Mapping[str, object], depth: int) -> Problems:
    inner = config.get("predicates")
    if config.get("logic", "and") not in ("and", "or"):
        yield "config", gettext("logic must be and, or or")
    if inner is None:
        if "logic" in config:
            yield "config", gettext("logic needs predicates")
        return
    if not isinstance(inner, list) or not 1 <= len(inner) <= MAX_NESTED or depth >= MAX_DEPTH:
        yield (
            "config",
            gettext("predicates must be a list of up to {count}, nested up to {depth} levels").format(
                count=MAX_NESTED, depth=MAX_DEPTH
            ),
        )
        return
    for predicate in inner:
        yield from _inner(predicate, depth)


def _inner(predicate: object, depth: int) -> Problems:
    if not isinstance(predicate, dict) or not predicate:
        yield "config", gettext("a predicate must have settings")
        return
    yield from check_names(predicate, TEXT_SETTINGS | _PATTERNED)
    try:
        require_pattern(predicate.get("pattern"))
    except ValueError as wrong:
        yield "config", str(wrong)
    yield from _text_settings(predicate, depth + 1)


def _file_facts(gate: GateSpec, value: Any) -> rules.FileFacts:
    """Facts about the file within the permitted directories `config.roots`. Links are resolved before comparing."""
    if not rules.is_permitted_path(value):
        return rules.FileFacts(permitted=False, size=None)
    for root in (Path(str(root)).resolve() for root in gate.config.get("roots") or ()):
        path = (root / value).resolve()
        # After links are resolved, so that none leads out of the directory (path traversal).
        if path.is_relative_to(root):
            return rules.FileFacts(permitted=True, size=path.stat().st_size if path.is_file() else None)
    return rules.FileFacts(permitted=False, size=None)
