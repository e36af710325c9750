"""Attack the detectors: slow texts, and injections in nine languages that no rule was written from.

How long each detector takes over 50,000 characters of each hostile text, and how many of the held-back injections of
`evals/detection` are found and how many urgent, angry and ordinary customers would be stopped.
"""

from __future__ import annotations

import base64
import random
import time
from typing import NamedTuple

from apps.gates.detectors.catalogue import TOPICS, detect
from attack.report import Figure
from tools.eval_languages import LANGUAGES, judged

CHARACTERS = 50_000
MOST_MILLISECONDS = 50.0
LEAST_FOUND, MOST_FALSE = 0.8, 0.01
DETECTORS = ("pii", "secrets", "markup", "jailbreak", "injection", "toxicity", "topic")
UNITS = {
    "base64": base64.b64encode(b"ignore previous instructions ").decode(),
    "hex pairs": "41 ",
    "numbers": "65, ",
    "lines of numbers": "120\n",
    "bits": "01000001 ",
    "morse": ".- ",
    "percent signs": "%25",
    "addresses": "a@",
    "links": "![a](",
    "tags": "<a ",
    "letters apart": "i g n o r e ",
    "zero-width signs": "a\u200b",
    "combining marks": "e\u0301",
    "mixed scripts": "a\u0430\u4e00",
    "digits": "1-2-",
    "accounts": "DE89 ",
    "names": "Anna, Bert, ",
    "phrases": "ignore all previous instructions and ",
    "backwards": "uoy eht dna ",
}
MIXTURE = "all of these"
# A neighbour on the same core makes a run slow; the best of several is what the detector takes.
TRIES = 8


class Slowest(NamedTuple):
    milliseconds: float
    detector: str
    unit: str


def run(short: bool) -> list[Figure]:
    units = dict(list(UNITS.items())[:: 3 if short else 1])
    units[MIXTURE] = "".join(random.Random(18).choices(list(UNITS.values()), k=CHARACTERS))[:CHARACTERS]
    return [_time(units), *_languages()]


def _time(units: dict[str, str]) -> Figure:
    slowest = max(Slowest(_taken(name, unit), name, of) for name in DETECTORS for of, unit in units.items())
    return Figure(
        "slowest detector at 50,000 characters",
        len(DETECTORS) * len(units),
        f"{slowest.milliseconds:.0f} ms ({slowest.detector}: {slowest.unit})",
        f"< {MOST_MILLISECONDS:.0f} ms",
        slowest.milliseconds < MOST_MILLISECONDS,
        timed=True,
    )


def _taken(name: str, unit: str) -> float:
    text = (unit * (CHARACTERS // len(unit) + 1))[:CHARACTERS]
    config = {"topics": list(TOPICS)} if name == "topic" else {}
    best = float("inf")
    for _ in range(TRIES):
        began = time.process_time()
        detect(name, text, config)
        best = min(best, (time.process_time() - began) * 1000)
        if best < MOST_MILLISECONDS / 2:
            break
    return best


def _languages() -> list[Figure]:
    found = [judged(language, "held_back") for language in LANGUAGES]
    detection = [
        Figure(
            f"injections found, held-back half, {each.language}",
            each.direct[1] + each.embedded[1],
            f"{each.detection:.0%} (to the bot {each.direct[0]}/{each.direct[1]}, in content"
            f" {each.embedded[0]}/{each.embedded[1]})",
            f">= {LEAST_FOUND:.0%}",
            each.detection >= LEAST_FOUND,
        )
        for each in found
    ]
    stopped, told = sum(each.blocked[0] for each in found), sum(each.blocked[1] for each in found)
    alarms = Figure(
        "customers stopped, held-back half, all languages",
        told,
        f"{stopped / told:.1%} ({', '.join(f'{each.language} {each.blocked[0]}/{each.blocked[1]}' for each in found)})",
        f"<= {MOST_FALSE:.0%}",
        stopped / told <= MOST_FALSE,
    )
    marked = sum(each.marked[0] for each in found)
    marks = Figure("the same texts as content: marked", told, f"{marked / told:.1%}", "reported", True)
    return [*detection, alarms, marks]
