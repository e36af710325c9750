"""Measure a text judged by guardrails-ai, beside the same detector without that library.

Not among those that run by themselves: it needs `make guardrails`. Every text is a new one, of 512 tokens or of 16 KiB;
counted is how long a caller waits, and how long the first question of a process waits.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

from bench import gates
from bench.report import Row

ROUNDS, WARM, LARGE = 100, 10, 16_384


def run() -> list[Row]:
    gates._prepare()
    from apps.gates import guardrails

    begun = time.perf_counter()
    guardrails.validate("pii", "Hello", {}, _fresh())
    first = (time.perf_counter() - begun) * 1000
    start = Row("guardrails-ai, first question of a process", first, "ms", "none", 0.0, 0.0)
    letter = gates._cut(gates._LETTER)
    sizes = {"512 tokens": letter, "16 KiB": (letter * 20)[:LARGE]}
    return [
        start,
        *(_row(check, size, text) for check in ("pii", "toxicity", "jailbreak") for size, text in sizes.items()),
    ]


def _row(check: str, size: str, text: str) -> Row:
    from apps.gates import guardrails, text_checks

    theirs, ours = _medians((guardrails.validate, text_checks.fails), check, text)
    return Row(f"guardrails-ai {check}, {size}, median", theirs, "ms", "custom", ours, theirs / ours)


def _medians(judges: tuple[Callable[..., Any], Callable[..., Any]], check: str, text: str) -> tuple[float, float]:
    """Both in ms; they take turns, so that a noisy second hurts both."""
    config: Mapping[str, Any] = {}
    times: tuple[list[float], list[float]] = ([], [])
    for at in range(WARM + ROUNDS):
        for spent, judge in zip(times, judges, strict=True):
            begun = time.perf_counter()
            judge(check, f"{at} {text}", config, _fresh())
            spent.append((time.perf_counter() - begun) * 1000)
    first, second = (sorted(spent[WARM:])[ROUNDS // 2] for spent in times)
    return first, second


def _fresh() -> Any:
    from apps.gates.detectors.normalise import Spellings

    return Spellings()
