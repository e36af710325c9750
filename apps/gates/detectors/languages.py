"""Expand phrase frames with the words of each language. Pure; called by `phrases`.

A frame names classes (`@ov ~3 @yours ~4 @orders`); `tables/languages.txt` says which words of a language are in them. A
class without words is left out of its step, and a frame with an empty step is left out of the language.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache

from apps.gates.detectors.normalise import TABLES, fold

_UMLAUTS = str.maketrans({"ä": "ae", "ö": "oe", "ü": "ue", "ß": "ss"})
_VOWELS = frozenset("aeiouyh")


def expand_frames(frames: Sequence[str]) -> list[str]:
    """The lines of a table: for each language its classes that the frames name, and its frames."""
    lines: list[str] = []
    for language, classes in _languages().items():
        named: set[str] = set()
        for frame in frames:
            if frame and not frame.startswith("#"):
                filled = _filled(frame, language, frozenset(classes))
                lines += [filled] if filled else []
                named |= {part.lstrip("!@") for step in frame.split() for part in step.split("|")}
        lines += [f"= {language}.{name}: {' '.join(words)}" for name, words in classes.items() if name in named]
    return lines


def _filled(frame: str, language: str, known: frozenset[str]) -> str:
    head, _, body = frame.partition(":")
    steps = []
    for step in body.split():
        absent = "!" if step.startswith("!") else ""
        if step.startswith(("@", "!@")):
            names = [part[1:] for part in step.removeprefix("!").split("|") if part[1:] in known]
            if not names:
                return ""
            step = absent + "|".join(f"@{language}.{name}" for name in names)
        steps.append(step)
    return f"{head}: {' '.join(steps)}"


@cache
def _languages() -> dict[str, dict[str, tuple[str, ...]]]:
    found: dict[str, dict[str, tuple[str, ...]]] = {}
    classes: dict[str, tuple[str, ...]] = {}
    articles: tuple[str, ...] = ()
    for line in (TABLES / "languages.txt").read_text("utf-8").splitlines():
        if line.startswith("["):
            classes, articles = found.setdefault(line.strip("[]"), {}), ()
        elif line and not line.startswith("#"):
            name, _, words = line.partition(":")
            if name == "elide":
                articles = tuple(words.split())
            else:
                spellings = dict.fromkeys(each for word in words.split() for each in _spellings(word, articles))
                classes[name] = (*classes.get(name, ()), *spellings)
    return found


def _spellings(word: str, articles: Sequence[str]) -> Iterator[str]:
    """As texts are folded; with the vowels of German written out; behind an article that lost its own (`l'ordine`)."""
    plain, _ = fold(word)
    yield plain
    written_out, _ = fold(word.translate(_UMLAUTS))
    yield written_out
    if plain[0] in _VOWELS:
        yield from (article + plain for article in articles)
