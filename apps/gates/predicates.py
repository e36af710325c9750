"""What does a predicate say when its `config` asks more than its type? Lengths, keywords, and predicates inside others.

Everything that is asked must hold; among nested `predicates`, with `logic: or`, one is enough. Pure, like `rules`;
`soundness` says which settings there are, and every unclear case is a block (contract 6). All of it together has
`GATE_SECONDS`: a gate of many patterns and words must not hold up everybody else.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import regex as patterns

from apps.gates import rules
from apps.gates.enums import GateAction, GateCode, GateType
from apps.gates.rules import PASS, Answer, FileFacts
from apps.gates.schemas import GateSpec
from kernel.llm.context.budget import count_tokens

# Settings of `config` that ask something about a text, whatever the gate's type.
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
# For all patterns and words of one gate; a single pattern has `rules.PATTERN_SECONDS`.
GATE_SECONDS = 0.3
_GRAVITY = {GateAction.CONTINUE: 0, GateAction.REQUIRE_APPROVAL: 1, GateAction.BLOCK: 2}


# Looks for a pattern in a text, under these flags, in the time that is left.
Search = Callable[[str, str, int], bool]


def judge(
    gate: GateSpec, value: Any, *, file: FileFacts | None = None, clock: Callable[[], float] = time.monotonic
) -> Answer:
    """The gate's type, and whatever else its config asks about the text. `custom_check` is the config alone. Raises
    `TimeoutError` when its patterns take too long, each or all."""
    search = _within(clock)
    asks = bool(TEXT_SETTINGS & set(gate.config))
    if gate.type == GateType.CUSTOM_CHECK:
        wanted = asks or "pattern" in gate.config
        return _judge_text(gate.config, value, search) if wanted else rules.judge(gate, value, file=file)
    answer = rules.judge(gate, value, file=file)
    if not asks:
        return answer
    seen = answer.changed if answer.changed is not None else value
    more = _judge_text({**gate.config, "pattern": None}, seen, search)
    return _gravest([answer, more])


def _within(clock: Callable[[], float]) -> Search:
    until = clock() + GATE_SECONDS

    def search(pattern: str, text: str, flags: int) -> bool:
        left = min(until - clock(), rules.PATTERN_SECONDS)
        if left <= 0:
            raise TimeoutError("the patterns of this gate take too long")
        return patterns.search(pattern, text, flags, timeout=left) is not None

    return search


def _judge_text(config: Mapping[str, Any], value: Any, search: Search, *, depth: int = 0) -> Answer:
    """All that `config` asks about one text."""
    if not isinstance(value, str) or len(value) > rules.MAX_TEXT or depth > MAX_DEPTH:
        return Answer(GateAction.BLOCK, GateCode.UNREADABLE, "No text that could be read as a whole")
    if not (TEXT_SETTINGS | {"pattern"}) & set(config):
        return Answer(GateAction.BLOCK, GateCode.MISCONFIGURED, "Nothing is asked")
    answers = [ask(config, value, search) for ask in _ASKS]
    return _gravest([*answers, _nested(config, value, search, depth)] if config.get("predicates") else answers)


def _nested(config: Mapping[str, Any], text: str, search: Search, depth: int) -> Answer:
    answers = [_judge_text(inner, text, search, depth=depth + 1) for inner in config["predicates"]]
    return _mildest(answers) if config.get("logic") == "or" else _gravest(answers)


def _pattern(config: Mapping[str, Any], text: str, search: Search) -> Answer:
    pattern = config.get("pattern")
    if not pattern or search(pattern, text, rules.flags_of(config)):
        return PASS
    return Answer(GateAction.BLOCK, GateCode.NO_MATCH, "The text does not match")


def _lengths(config: Mapping[str, Any], text: str, _search: Search) -> Answer:
    for least, most, size in (("min_chars", "max_chars", len(text)), ("min_tokens", "max_tokens", count_tokens(text))):
        if config.get(least) is not None and size < config[least]:
            return Answer(GateAction.BLOCK, GateCode.TOO_SHORT, "The text is too short")
        if config.get(most) is not None and size > config[most]:
            return Answer(GateAction.BLOCK, GateCode.TOO_LONG, "The text is too long")
    return PASS


def _blocked(config: Mapping[str, Any], text: str, search: Search) -> Answer:
    words = config.get("blocked_keywords")
    if words and _contains(text, words, config, search):
        return Answer(GateAction.BLOCK, GateCode.KEYWORD_FOUND, "A word that is not allowed")
    return PASS


def _required(config: Mapping[str, Any], text: str, search: Search) -> Answer:
    if all(_contains(text, [word], config, search) for word in config.get("required_keywords") or ()):
        return PASS
    return Answer(GateAction.REQUIRE_APPROVAL, GateCode.KEYWORD_MISSING, "A word that should be there is missing")


_ASKS: Sequence[Callable[[Mapping[str, Any], str, Search], Answer]] = (_pattern, _lengths, _blocked, _required)


def _contains(text: str, words: Sequence[str], config: Mapping[str, Any], search: Search) -> bool:
    """One of them, as a whole word or phrase, in any case unless `case_sensitive`."""
    flags = 0 if config.get("case_sensitive") else patterns.IGNORECASE
    return search(rf"(?<!\w)(?:{'|'.join(map(patterns.escape, words))})(?!\w)", text, int(flags))


def _gravest(answers: Iterable[Answer]) -> Answer:
    """The first of the gravest; what a passing answer changed is kept while all pass."""
    found = list(answers)
    worst = max(found, key=lambda answer: _GRAVITY[answer.action], default=None)
    if worst is None:
        return Answer(GateAction.BLOCK, GateCode.MISCONFIGURED, "Nothing is asked")
    changed = [answer for answer in found if answer.changed is not None]
    return changed[0] if worst.action == GateAction.CONTINUE and changed else worst


def _mildest(answers: Sequence[Answer]) -> Answer:
    return min(answers, key=lambda answer: _GRAVITY[answer.action])
