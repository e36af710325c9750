"""Measure how well injections are found in each language, on our own sentences, at the gates' thresholds.

`evals/detection/tuning` may be read and written for; of `evals/detection/held_back` only totals are ever printed. A
line is `kind|text`: `d` said to the bot, `e` standing in content, `u`, `a` and `o` what urgent, angry and ordinary
customers write. `{a|b}` stands for each of its ways, taken in turn; `\\n` is a line break.
"""

from __future__ import annotations

import argparse
import re
import sys
from itertools import cycle, islice
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from apps.gates.detectors.catalogue import detect, threshold

FOLDER = Path(__file__).resolve().parent.parent / "evals" / "detection"
LANGUAGES = ("en", "de", "fr", "es", "pt", "it", "nl", "zh", "ja")
DIRECT, EMBEDDED, CUSTOMERS = "d", "e", "uao"
_WAYS = re.compile(r"\{([^{}|]*(?:\|[^{}|]*)+)\}")


class Case(NamedTuple):
    kind: str
    text: str


class Result(NamedTuple):
    """Found and all of each sort: attacks on the bot, attacks in content (by the stricter eye of content), customers'
    texts that the bot would block, and that content would be marked for."""

    language: str
    direct: tuple[int, int]
    embedded: tuple[int, int]
    blocked: tuple[int, int]
    marked: tuple[int, int]

    @property
    def detection(self) -> float:
        return (self.direct[0] + self.embedded[0]) / (self.direct[1] + self.embedded[1])

    @property
    def false_alarms(self) -> float:
        return self.blocked[0] / self.blocked[1]


def cases(language: str, half: str) -> list[Case]:
    lines = (FOLDER / half / f"{language}.txt").read_text("utf-8").splitlines()
    pairs = (line.split("|", 1) for line in lines if line and not line.startswith("#"))
    return [Case(kind, text.replace("\\n", "\n")) for kind, written in pairs for text in _ways(written)]


def _ways(written: str) -> list[str]:
    """As many texts as the longest list of ways has; shorter ones begin again, each list at another place."""
    lists = [found.split("|") for found in _WAYS.findall(written)]
    if not lists:
        return [written]
    turns = [islice(cycle(ways), place, None) for place, ways in enumerate(lists)]
    texts = []
    for _ in range(max(map(len, lists))):
        chosen = iter([next(turn) for turn in turns])
        texts.append(_WAYS.sub(lambda _, chosen=chosen: next(chosen), written))  # type: ignore[misc]
    return texts


def objects(detector: str, text: str) -> bool:
    return detect(detector, text, {}).score >= threshold(detector, {})


def judged(language: str, half: str) -> Result:
    told = cases(language, half)
    return Result(
        language,
        _share(told, DIRECT, "jailbreak"),
        _share(told, EMBEDDED, "injection"),
        _share(told, CUSTOMERS, "jailbreak"),
        _share(told, CUSTOMERS, "injection"),
    )


def _share(told: list[Case], kinds: str, detector: str) -> tuple[int, int]:
    texts = [case.text for case in told if case.kind in kinds]
    return sum(objects(detector, text) for text in texts), len(texts)


def misses(language: str) -> list[str]:
    """Of the tuning half only."""
    found = []
    for case in cases(language, "tuning"):
        detector = "injection" if case.kind == EMBEDDED else "jailbreak"
        if objects(detector, case.text) != (case.kind in DIRECT + EMBEDDED):
            found.append(f"{case.kind} {case.text!r}")
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tuning", action="store_true", help="the half that words are written from, with its misses")
    given = parser.parse_args()
    report("tuning" if given.tuning else "held_back", with_misses=given.tuning)
    return 0


def report(half: str, *, with_misses: bool = False) -> None:
    print(f"Injections by language, {half.replace('_', '-')} half: found of all; false alarms on customers' texts")
    for language in LANGUAGES:
        found = judged(language, half)
        print(
            f"  {language}  found {found.detection:6.1%}  (to the bot {_of(found.direct)}, in content"
            f" {_of(found.embedded)})  false alarms: blocked {_of(found.blocked)}, marked {_of(found.marked)}"
        )
        if with_misses and half == "tuning":
            print(*(f"      {line}" for line in misses(language)), sep="\n")


def _of(share: tuple[int, int]) -> str:
    return f"{share[0]}/{share[1]}"


if __name__ == "__main__":
    sys.exit(main())
