"""Documents for search benchmarks: a generated insurer's handbook, the same on every machine.

Words have the shape of real ones: some stand everywhere, most are rare; every section has a form number of its own.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path

SECTIONS = 20
_TOPICS = """
home, motor, travel, pet, life, health, boat, bicycle, landlord, liability, dental, legal, gadget, farm, event, cyber
"""
_EVENTS = """
burst pipe, storm damage, stolen bicycle, broken window, lost luggage, late delivery, damaged parcel, water leak,
kitchen fire, break-in, road accident, vet bill, cancelled flight, cracked screen, flooded cellar, fallen tree
"""
_VERBS = "covers, excludes, limits, pays for, replaces, repairs, refunds, reviews, declines, accepts"
_TERMS = """
within fourteen days of the event, up to the sum insured, after the excess has been deducted, when it is reported in
writing, if the item was kept in a locked room, unless the building was empty for sixty days, subject to the schedule,
for every member of the household, during the period of insurance, at the address on the policy, with a receipt or
other proof, in the original packaging, by a repairer that we have approved, once in every policy year
"""
_SYLLABLES = (
    "ba, be, bi, bo, da, de, di, do, fa, fe, ka, ke, ki, ko, la, le, li, lo, ma, me, mi, mo, na, ne, ni, no, ra, re"
)
_QUESTIONS = (
    "Does my {topic} policy cover a {event} under the {name} rule?",
    "what happens with a {event} on {topic} insurance, {name}",
    "Where do I use form {form}?",
    "Hello, I would like to know please whether the {name} rule says anything about a {event}",
)


def _words(text: str) -> list[str]:
    return [" ".join(word.split()) for word in text.split(",")]


TOPICS, EVENTS, VERBS, TERMS = (_words(text) for text in (_TOPICS, _EVENTS, _VERBS, _TERMS))


def write(path: Path, *, sections: int) -> list[tuple[str, str]]:
    """Write JSONL documents with `sections` sections in all; answers with a question and its form for every section."""
    dice = random.Random(20_000)
    names = ["".join(dice.choices(_words(_SYLLABLES), k=dice.randint(3, 4))) for _ in range(6000)]
    questions: list[tuple[str, str]] = []
    with path.open("w", encoding="utf-8") as file:
        for number in range(sections // SECTIONS):
            topic = dice.choice(TOPICS)
            title = f"{topic.title()} handbook {number}"
            parts = [f"# {title}", *(_section(dice, topic, names, questions) for _ in range(SECTIONS))]
            file.write(json.dumps({"id": number, "title": title, "text": "\n\n".join(parts)}) + "\n")
    return questions


def _section(dice: random.Random, topic: str, names: list[str], questions: list[tuple[str, str]]) -> str:
    form = f"{dice.choice('ABCDEFGH')}{dice.choice('KLMNP')}-{len(questions):05d}"
    event, name = dice.choice(EVENTS), dice.choice(names)
    questions.append((dice.choice(_QUESTIONS).format(topic=topic, event=event, name=name, form=form), form))
    return "\n".join(_sentences(dice, topic, event, name, form, names))


def _sentences(dice: random.Random, topic: str, event: str, name: str, form: str, names: list[str]) -> Iterator[str]:
    yield f"## {event.capitalize()} and the {name} rule\n"
    yield f"Our {topic} policy {dice.choice(VERBS)} a {event} {dice.choice(TERMS)}, under the {name} rule."
    for _ in range(dice.randint(2, 4)):
        other, where = dice.choice(EVENTS), dice.choice(TERMS)
        yield f"It {dice.choice(VERBS)} a {other} {where}, {dice.choice(names)} {dice.choice(TERMS)}."
    yield f"Ask for form {form}."
