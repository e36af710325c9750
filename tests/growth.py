"""How the work of a function grows with the length of its text, measured so that a busy machine does not decide.

Processor time of the best of several runs, at a length and at twice that length. What looks worse than linear is
measured again at greater lengths, where noise matters less and a worse growth shows more.
"""

from __future__ import annotations

import time
from collections.abc import Callable

RUNS = 4
# Below this many seconds at the greater length a text of any length that is let in is read at once.
UNNOTICED = 0.004
MOST_GROWTH = 3.0


def grows_faster_than_its_text(run: Callable[[str], object], unit: str, *, size: int = 6_000, tries: int = 3) -> bool:
    """Whether `run` over repetitions of `unit` more than doubles, noise allowed for, when the text doubles."""
    for _ in range(tries):
        small, great = (_seconds(run, (unit * (length // len(unit) + 1))[:length]) for length in (size, 2 * size))
        if great < UNNOTICED or great < MOST_GROWTH * small:
            return False
        size = size * 3 // 2
    return True


def _seconds(run: Callable[[str], object], text: str) -> float:
    best = float("inf")
    for _ in range(RUNS):
        began = time.process_time()
        run(text)
        best = min(best, time.process_time() - began)
    return best
