"""Texts of the product that are stored in English and translated when they are shown.

A card, a gate's reason or a suggestion is stored once and read by members of several languages. Its text is written
with `stored_text`, which marks it for translation, and shown with `show_stored`, which recognises it, also with values
filled in. What a skill, a model or a person wrote is shown as it is. `make translations` lists the marked texts in
`locale/stored_texts.json`, so that a process knows those that another one has stored.
"""

from __future__ import annotations

import json
import re
from functools import cache, lru_cache
from pathlib import Path
from string import Formatter

LISTED = Path(__file__).resolve().parent.parent / "locale" / "stored_texts.json"
_NUMBER = r"-?\d[\d.,e+-]*"
_SENTENCE_END = re.compile(r"(?<=[.!?]) ")
_DEPTH = 3
# Cards hold texts of people and models of any length; none of the product's own is longer.
_LONGEST = 1000


def stored_text(text: str) -> str:
    """Mark the text, which may have named placeholders for `str.format`, and return it.

    A placeholder for a number says so (`{count:d}`, `{amount:g}`), so that other words are not taken for this text.
    """
    return text


def show_stored(text: object) -> str:
    """Return the text in the reader's language if it is one of the marked ones, or several of them, else unchanged."""
    from django.utils.translation import get_language  # here, because rules that mark texts run without Django too

    language = get_language() or ""
    whole = _translate(str(text), language)
    if whole != text or not _SENTENCE_END.search(whole):
        return whole
    return " ".join(_translate(sentence, language) for sentence in _SENTENCE_END.split(whole))


@lru_cache(maxsize=8192)
def _translate(text: str, language: str, depth: int = 0) -> str:
    from kernel.language import DEFAULT_LANGUAGE, gettext

    if not 0 < len(text) <= _LONGEST or language.startswith(DEFAULT_LANGUAGE):
        return text
    if text in _texts():
        return gettext(text)
    for template, pattern in _templates() if depth < _DEPTH else ():
        if match := pattern.fullmatch(text):
            values = {name: _translate(value, language, depth + 1) for name, value in match.groupdict().items()}
            return re.sub(r"\{(\w+):\w\}", r"{\1}", gettext(template)).format(**values)
    return text


@cache
def _texts() -> frozenset[str]:
    return frozenset(json.loads(LISTED.read_text()))


@cache
def _templates() -> list[tuple[str, re.Pattern[str]]]:
    """The texts with placeholders and what they match, those with the most fixed characters first."""
    templates = [text for text in _texts() if "{" in text]
    templates.sort(key=lambda text: (-len(re.sub(r"\{[^{}]*\}", "", text)), text))
    return [(template, _pattern(template)) for template in templates]


def _pattern(template: str) -> re.Pattern[str]:
    parts = []
    for literal, name, spec, _ in Formatter().parse(template):
        parts.append(re.escape(literal))
        if name:
            parts.append(f"(?P<{name}>{_NUMBER if spec else '.+?'})")
    return re.compile("".join(parts), re.DOTALL)
