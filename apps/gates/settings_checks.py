"""Checks of settings that several kinds of gates share. Problems are sentences for the author, by field."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from kernel.language import gettext

# The field, and a sentence for the author.
Problems = Iterator[tuple[str, str]]

MAX_WORDS, MAX_WORD = 100, 80
# Settings that any gate may have: its tools, and how approval works.
_ANY = frozenset({"tools", "standing_approval_counts", "wait_seconds"})


def check_names(config: Mapping[str, object], known: frozenset[str]) -> Problems:
    unknown = sorted(map(str, set(config) - known - _ANY))
    if unknown:
        yield "config", gettext("unknown setting: {names}").format(names=", ".join(unknown)[:80])


def check_words(config: Mapping[str, Any], name: str) -> Problems:
    words = config[name]
    is_valid = isinstance(words, list) and 1 <= len(words) <= MAX_WORDS
    if not is_valid or not all(isinstance(word, str) and 0 < len(word.strip()) <= MAX_WORD for word in words):
        yield "config", gettext("{name} must be a list of up to {count} words").format(name=name, count=MAX_WORDS)


def check_whole(config: Mapping[str, Any], name: str, *, least: int = 0, most: int = 10**9) -> Problems:
    if not is_whole(config[name]) or not least <= config[name] <= most:
        yield (
            "config",
            gettext("{name} must be a whole number from {least} to {most}").format(name=name, least=least, most=most),
        )


def is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
