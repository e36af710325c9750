"""Results of detectors: a score, the spans found, and the redacted text. Frozen values only."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple


class Span(NamedTuple):
    """Characters `start` to `end` (not included) of the text as it was given, and what they are."""

    start: int
    end: int
    kind: str


@dataclass(frozen=True)
class Detection:
    """`score` from 0 to 1. `redacted` is None for a detector that only judges."""

    score: float
    spans: tuple[Span, ...] = ()
    redacted: str | None = None

    @property
    def kinds(self) -> tuple[str, ...]:
        return tuple(sorted({span.kind for span in self.spans}))


NOTHING = Detection(0.0)


def any_of(weights: Iterable[float]) -> float:
    """How sure several independent signs make us together: 1 minus the chance that each is wrong."""
    doubt = 1.0
    for weight in weights:
        doubt *= 1.0 - weight
    return round(1.0 - doubt, 6)


def without_overlap(spans: Iterable[Span]) -> tuple[Span, ...]:
    """In order of the text; of two that overlap the one that begins first, then the longer one."""
    kept: list[Span] = []
    last = 0
    for span in sorted(spans, key=lambda span: (span[0], -span[1])):
        if last <= span[0] < span[1]:
            kept.append(span)
            last = span[1]
    return tuple(kept)


def build_detection(text: str, found: Sequence[tuple[Span, float]], *, alike: bool = False) -> Detection:
    """The answer of a detector that takes out what it found; `found` are places and how sure each makes us. `alike`:
    many of one weight are one sign, as ten plain links are no surer than one."""
    if not found:
        return NOTHING
    spans = without_overlap(span for span, _ in found)
    sure = [sure for _, sure in found]
    # Sorted: floats multiplied in another order differ in the last digit, and the score would not repeat.
    return Detection(any_of(sorted(set(sure)) if alike else sure), spans, _replaced(text, spans))


def redact(text: str, spans: Iterable[Span]) -> str:
    """Each place replaced by its kind in brackets: `[CREDIT_CARD]`."""
    return _replaced(text, without_overlap(spans))


def _replaced(text: str, spans: Iterable[Span]) -> str:
    """`spans` are in order and none overlaps another."""
    pieces, last = [], 0
    for span in spans:
        pieces += [text[last : span.start], f"[{span.kind}]"]
        last = span.end
    return "".join([*pieces, text[last:]])
