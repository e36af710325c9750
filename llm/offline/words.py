"""Split texts into words, stems and sentences, and pick the words that carry meaning. Pure; English."""

from __future__ import annotations

import re
from collections.abc import Collection
from functools import lru_cache

from llm.offline.vocabulary import SAME, STOP

_WORD = re.compile(r"[^\W_]+(?:['\u2019][^\W_]+)*")
_SUFFIXES = {
    "ations": 4, "ation": 4, "ments": 3, "ment": 3, "ances": 4, "ance": 4, "ages": 5, "age": 5, "ingly": 3, "edly": 3,
    "ings": 3, "ing": 3, "ies": 2, "ied": 2, "ed": 3, "ly": 4, "es": 3, "s": 3,
}  # fmt: skip
_KEEPS_S = ("ss", "us", "is")
_SENTENCE_END = re.compile(r"[.!?][\"'”\u2019)\]*_]*(?=\s)")
_LINE_ITEM = re.compile(r"\s*(?:[-*+•]\s+|\d{1,3}[.)]\s+|#{1,6}\s+|>\s*|\|)")
_ABBREVIATION = re.compile(r"\b(?:e\.g|i\.e|mr|mrs|ms|dr|no|nr|st|approx|etc|incl|vs|fig|sec)\.$", re.IGNORECASE)


def words(text: str) -> list[str]:
    return list(_words(text))


@lru_cache(maxsize=1024)
def _words(text: str) -> tuple[str, ...]:
    return tuple(word.lower().replace("\u2019", "'") for word in _WORD.findall(text))


@lru_cache(maxsize=8192)
def stem(word: str) -> str:
    """A common form: covers, covered and coverage meet, and so do bike and bicycle; what matters is only that they
    meet.
    """
    form = _form(word.lower().replace("\u2019", "'").removesuffix("'s").replace("'", ""))
    return _SAME_FORMS.get(form, form)


def _form(word: str) -> str:
    suffix = next((end for end, least in _SUFFIXES.items() if _ends(word, end, least)), "")
    word = word.removesuffix(suffix) + ("y" if suffix in ("ies", "ied") else "")
    if len(word) > 3 and word[-1] == word[-2] and word[-1] not in "aeious":
        word = word[:-1]
    if len(word) > 3 and word.endswith("e"):
        word = word[:-1]
    return word[:-1] + "i" if len(word) > 2 and word.endswith("y") else word


def _ends(word: str, suffix: str, least: int) -> bool:
    """`word` has `suffix` and `least` letters before it."""
    return (
        word.endswith(suffix) and len(word) - len(suffix) >= least and not (suffix == "s" and word.endswith(_KEEPS_S))
    )


_SAME_FORMS = {_form(word): _form(group.split()[0]) for group in SAME for word in group.split()}


def stems(text: str) -> list[str]:
    return [stem(word) for word in words(text)]


def content(text: str) -> list[str]:
    """The stems of the words that carry meaning, in order, each once."""
    return list(_content(text))


@lru_cache(maxsize=1024)
def _content(text: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(stem(word) for word in words(text) if not is_stop_word(word)))


def is_stop_word(word: str) -> bool:
    return word.replace("'", "") in STOP or word.partition("'")[0] in STOP


def near(one: str, other: str) -> bool:
    """Equal, or one slip of the finger apart in words long enough for that to be a slip."""
    if one == other:
        return True
    if min(len(one), len(other)) < 5 or abs(len(one) - len(other)) > 1 or one[0] != other[0]:
        return False
    return _one_slip(one, other)


def _one_slip(one: str, other: str) -> bool:
    if len(one) > len(other):
        one, other = other, one
    at = next((i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), len(one))
    if len(one) < len(other):
        return one[at:] == other[at + 1 :]
    swapped = one[at + 1 : at + 2] + one[at : at + 1] == other[at : at + 2]
    return one[at + 1 :] == other[at + 1 :] or (swapped and one[at + 2 :] == other[at + 2 :])


def holds(stem_: str, vocabulary: Collection[str]) -> bool:
    return stem_ in vocabulary or any(near(stem_, known) for known in vocabulary)


def sentences(text: str) -> list[tuple[int, int]]:
    """The character spans of sentences, list items and lines of a table or heading, in order, without surrounding
    space.
    """
    spans: list[tuple[int, int]] = []
    for start, end in _paragraphs(text):
        cursor = start
        for match in _SENTENCE_END.finditer(text, start, end) if text[start:end].lstrip()[0] != "#" else ():
            if _ABBREVIATION.search(text, cursor, match.start() + 1):
                continue
            spans.append((cursor, match.end()))
            cursor = match.end()
        spans.append((cursor, end))
    return [span for span in (_trim(text, *span) for span in spans) if span[0] < span[1]]


def _paragraphs(text: str) -> list[tuple[int, int]]:
    """Runs of lines that belong together: broken at blank lines and before every list item, heading or table row."""
    spans: list[list[int]] = []
    offset, fresh = 0, True
    for line in text.splitlines(keepends=True):
        item = _LINE_ITEM.match(line)
        if not line.strip():
            fresh = True
        elif fresh or item or not spans:
            spans.append([offset, offset + len(line)])
            fresh = bool(item and line.lstrip().startswith(("#", "|")))
        else:
            spans[-1][1] = offset + len(line)
        offset += len(line)
    return [(start, end) for start, end in spans]


def _trim(text: str, start: int, end: int) -> tuple[int, int]:
    while start < end and text[start].isspace():
        start += 1
    while end > start and text[end - 1].isspace():
        end -= 1
    return start, end
