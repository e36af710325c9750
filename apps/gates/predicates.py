"""Evaluate predicate gates with further conditions in `config`: lengths, keywords and nested predicates.

All conditions must hold; of nested `predicates` with `logic: or`, one is enough. Pure, like `rules`. `validation`
defines the settings; every unclear case blocks (contract silas 6). All patterns and keywords of a gate share
`GATE_SECONDS`, because one gate must not delay everybody else."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import regex as patterns

from apps.gates import rules
from apps.gates.enums import GateAction, GateCode, GateType
from apps.gates.rules import PASS, Answer, FileFacts
from apps.gates.schemas import GateSpec
from kernel.stored_texts import stored_text
from llm.context.budget import count_tokens

# Settings of `config` that are conditions on the text, for any type of gate.
TEXT_SETTINGS = frozenset(
    {
        "min_chars",
        "max_chars",
        "min_tokens",
        "max_tokens",
        "blocked_keywords",
        "required_keywords",
        "logic",
        "predicates",
    }
)
MAX_DEPTH = 3
# For all patterns and keywords of one gate; each pattern has `rules.PATTERN_SECONDS`.
GATE_SECONDS = 0.3
_SEVERITY = {GateAction.CONTINUE: 0, GateAction.REQUIRE_APPROVAL: 1, GateAction.BLOCK: 2}


# Searches a text for a pattern, with flags, within the remaining time.
Search = Callable[[str, str, int], bool]


def judge(
    gate: GateSpec, value: object, *, file: FileFacts | None = None, clock: Callable[[], float] = time.monotonic
) -> Answer:
    """Apply the gate's type and the text conditions of its config; `custom_check` has the config only. Raises
    `TimeoutError` if one pattern, or all together, take too long."""
    search = _within(clock)
    has_conditions = bool(TEXT_SETTINGS & set(gate.config))
    if gate.type == GateType.CUSTOM_CHECK:
        is_set = has_conditions or "pattern" in gate.config
        return _judge_text(gate.config, value, search) if is_set else rules.judge(gate, value, file=file)
    answer = rules.judge(gate, value, file=file)
    if not has_conditions:
        return answer
    text = answer.changed if answer.changed is not None else value
    # The pattern was the gate's own condition and is not applied twice.
    more = _judge_text({**gate.config, "pattern": None}, text, search)
    return _most_severe([answer, more])


def _within(clock: Callable[[], float]) -> Search:
    until = clock() + GATE_SECONDS

    def search(pattern: str, text: str, flags: int) -> bool:
        left = min(until - clock(), rules.PATTERN_SECONDS)
        if left <= 0:
            raise TimeoutError("the patterns of this gate take too long")
        return patterns.search(pattern, text, flags, timeout=left) is not None

    return search


def _judge_text(config: Mapping[str, object], value: object, search: Search, *, depth: int = 0) -> Answer:
    """Apply all conditions of `config` to one text."""
    if not isinstance(value, str) or len(value) > rules.MAX_TEXT or depth > MAX_DEPTH:
        return Answer(GateAction.BLOCK, GateCode.UNREADABLE, stored_text("No text, or it's too long to check"))
    if not (TEXT_SETTINGS | {"pattern"}) & set(config):
        return Answer(GateAction.BLOCK, GateCode.MISCONFIGURED, stored_text("No condition is set"))
    answers = [check(config, value, search) for check in _CHECKS]
    return _most_severe([*answers, _nested(config, value, search, depth)] if config.get("predicates") else answers)


def _nested(config: Mapping[str, Any], text: str, search: Search, depth: int) -> Answer:
    answers = [_judge_text(inner, text, search, depth=depth + 1) for inner in config["predicates"]]
    return _least_severe(answers) if config.get("logic") == "or" else _most_severe(answers)


def _pattern(config: Mapping[str, Any], text: str, search: Search) -> Answer:
    pattern = config.get("pattern")
    if not pattern or search(pattern, text, rules.flags_of(config)):
        return PASS
    return Answer(GateAction.BLOCK, GateCode.NO_MATCH, stored_text("The text does not match"))


def _lengths(config: Mapping[str, Any], text: str, _search: Search) -> Answer:
    for least, most, size in (("min_chars", "max_chars", len(text)), ("min_tokens", "max_tokens", count_tokens(text))):
        if config.get(least) is not None and size < config[least]:
            return Answer(GateAction.BLOCK, GateCode.TOO_SHORT, stored_text("The text is too short"))
        if config.get(most) is not None and size > config[most]:
            return Answer(GateAction.BLOCK, GateCode.TOO_LONG, stored_text("The text is too long"))
    return PASS


def _blocked(config: Mapping[str, Any], text: str, search: Search) -> Answer:
    words = config.get("blocked_keywords")
    if words and _contains(text, words, config, search):
        return Answer(GateAction.BLOCK, GateCode.KEYWORD_FOUND, stored_text("Contains a blocked keyword"))
    return PASS


def _required(config: Mapping[str, Any], text: str, search: Search) -> Answer:
    if all(_contains(text, [word], config, search) for word in config.get("required_keywords") or ()):
        return PASS
    return Answer(GateAction.REQUIRE_APPROVAL, GateCode.KEYWORD_MISSING, stored_text("A required keyword is missing"))


_CHECKS: Sequence[Callable[[Mapping[str, object], str, Search], Answer]] = (_pattern, _lengths, _blocked, _required)


def _contains(text: str, words: Sequence[str], config: Mapping[str, object], search: Search) -> bool:
    """Whether the text has one of these words or phrases, ignoring case unless `case_sensitive`."""
    flags = 0 if config.get("case_sensitive") else patterns.IGNORECASE
    return search(rf"(?<!\w)(?:{'|'.join(map(patterns.escape, words))})(?!\w)", text, int(flags))


def _most_severe(answers: Iterable[Answer]) -> Answer:
    """The first of the most severe answers; if all pass, the first one that changed the value."""
    all_answers = list(answers)
    worst = max(all_answers, key=lambda answer: _SEVERITY[answer.action], default=None)
    if worst is None:
        return Answer(GateAction.BLOCK, GateCode.MISCONFIGURED, stored_text("No condition is set"))
    changed = [answer for answer in all_answers if answer.changed is not None]
    return changed[0] if worst.action == GateAction.CONTINUE and changed else worst


def _least_severe(answers: Sequence[Answer]) -> Answer:
    return min(answers, key=lambda answer: _SEVERITY[answer.action])
