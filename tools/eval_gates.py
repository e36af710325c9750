"""Evaluate the detectors: `make eval-gates` prints precision, recall, false positives and confusion matrices.

The held-back half of each corpus unless `--tuning` is given, at the thresholds that gates have by themselves.
`--misses NAME` prints what was missed in the tuning half, never in the held-back one.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from apps.gates.detectors.catalogue import detect, threshold
from apps.gates.detectors.pii import detect_pii
from tools import eval_corpora as corpora
from tools import eval_forms as forms
from tools import eval_languages

FOLDER = Path(__file__).resolve().parent.parent / "var" / "corpora"
ATTACKS = {
    "jailbreaks in the wild": corpora.jailbreaks,
    "personas (DAN and kin)": corpora.personas,
    "system prompt extraction": corpora.extractions,
    "goal hijacking": corpora.hijackings,
}
CUSTOMERS = {"retail and airline customers": corpora.customers, "telecom and bank customers": corpora.callers}
# First and last character of a place and its kind; how many of each kind were right, missed and wrong.
Place = tuple[int, int, str]
Counts = tuple[Counter[str], Counter[str], Counter[str]]
# Cases that would not fit a message, as the widget takes none longer.
LONGEST = 16_384


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tuning", action="store_true", help="the half that rules may be written from")
    parser.add_argument("--misses", metavar="CORPUS", help="print what was missed there; implies --tuning")
    parser.add_argument("--corpora", type=Path, default=FOLDER)
    given = parser.parse_args()
    held_back = not (given.tuning or given.misses)
    print(f"The {'held-back' if held_back else 'tuning'} half of each corpus, default thresholds.")
    harmless = {name: corpora.half(read(given.corpora), held_back=held_back) for name, read in CUSTOMERS.items()}
    attacks = {name: corpora.half(read(given.corpora), held_back=held_back) for name, read in ATTACKS.items()}
    judge("jailbreak", attacks, harmless, misses=given.misses)
    hidden(attacks, harmless)
    toxic = {"toxic prompts": corpora.half(corpora.toxic(given.corpora), held_back=held_back)}
    judge("toxicity", toxic, harmless, misses=given.misses)
    people([labelled for labelled in corpora.people(given.corpora) if labelled.held_back == held_back])
    named(corpora.named_customers(given.corpora, held_back=held_back))
    given_away = {"keys of the forms that garak knows": forms.keys(given.corpora, held_back=held_back)}
    judge("secrets", given_away, harmless, misses=given.misses)
    links = {"links, images and addresses of garak's": forms.leaking_links(given.corpora, held_back=held_back)}
    judge("markup", links, harmless, misses=given.misses)
    print()
    eval_languages.report("held_back" if held_back else "tuning")
    return 0


def objects(detector: str, text: str) -> bool:
    return detect(detector, text[:LONGEST], {}).score >= threshold(detector, {})


def judge(
    detector: str, wanted: dict[str, list[str]], unwanted: dict[str, list[str]], *, misses: str | None = None
) -> None:
    print(f"\n{detector} (threshold {threshold(detector, {})})")
    found = {name: sum(objects(detector, text) for text in texts) for name, texts in {**wanted, **unwanted}.items()}
    for name, texts in wanted.items():
        print(f"  recall           {share(found[name], len(texts))}  {name}")
        if misses == name:
            print(*(f"    {text[:300]!r}" for text in texts if not objects(detector, text)), sep="\n")
    for name, texts in unwanted.items():
        print(f"  false positives  {share(found[name], len(texts))}  {name}")
        if misses == name:
            print(*(f"    {text[:300]!r}" for text in texts if objects(detector, text)), sep="\n")
    matrix(
        sum(found[name] for name in wanted),
        sum(map(len, wanted.values())),
        sum(found[name] for name in unwanted),
        sum(map(len, unwanted.values())),
    )


def matrix(right: int, wanted: int, wrong: int, unwanted: int) -> None:
    print(
        f"  confusion: attack found {right}, missed {wanted - right}; harmless found {wrong}, passed {unwanted - wrong}"
    )
    if wanted:
        precision = right / max(1, right + wrong)
        print(f"  precision {precision:.3f}, recall {right / wanted:.3f}")


def hidden(attacks: dict[str, list[str]], harmless: dict[str, list[str]]) -> None:
    print("\njailbreak, obfuscated by our own code (all attacks; false positives: all customers)")
    texts = [text for group in attacks.values() for text in group]
    calm = [text for group in harmless.values() for text in group]
    for name, change in corpora.OBFUSCATIONS.items():
        recall = share(sum(objects("jailbreak", change(text)) for text in texts), len(texts))
        print(
            f"  recall {recall}  false {share(sum(objects('jailbreak', change(t)) for t in calm), len(calm))}  {name}"
        )


def people(cases: list[corpora.Labelled]) -> None:
    """By overlap, which is what is promised; beside it what is found to the letter, and how many words are."""
    for name, count in MEASURES.items():
        right, missed, wrong = count(cases)
        print(f"\npii, by kind, {name}")
        kinds = sorted({*right, *missed, *wrong})
        for kind in kinds:
            print(f"  {kind:12} {scores(right[kind], missed[kind], wrong[kind])}")
        numbered = [kind for kind in kinds if kind != "PERSON"]
        for group, of in (("all but names", numbered), ("all", kinds)):
            print(f"  {group:12} {scores(*(sum(counts[kind] for kind in of) for counts in (right, missed, wrong)))}")


def named(cases: list[corpora.Labelled]) -> None:
    """The records know single words and not where a name ends: nothing is said to the letter."""
    right, missed, wrong = (counts["PERSON"] for counts in overlapping(cases))
    print(f"\npii, names in {len(cases)} texts of retail and airline customers\n  {scores(right, missed, wrong)}")


def overlapping(cases: list[corpora.Labelled]) -> Counts:
    """A place is found when one of the same kind overlaps it; each finding that overlaps none is wrong."""
    right, missed, wrong = Counter[str](), Counter[str](), Counter[str]()
    for case in cases:
        spans = detect_pii(case.text).spans
        for start, end, kind in case.places:
            hit = any(span.kind == kind and span.start < end and start < span.end for span in spans)
            (right if hit else missed)[kind] += 1
        for span in spans:
            known = any(k == span.kind and span.start < end and start < span.end for start, end, k in case.places)
            wrong[span.kind] += not known
    return right, missed, wrong


def exact(cases: list[corpora.Labelled]) -> Counts:
    """A place is found when one of the same kind has its first and its last character; every other finding is wrong."""
    return _compared(cases, lambda _, places: places)


def by_word(cases: list[corpora.Labelled]) -> Counts:
    """Each word of a place is found when it stands in a finding of the same kind, even in part."""
    return _compared(cases, _words)


def _compared(cases: list[corpora.Labelled], split: Callable[[str, set[Place]], set[Place]]) -> Counts:
    right, missed, wrong = Counter[str](), Counter[str](), Counter[str]()
    for case in cases:
        wanted = split(case.text, set(case.places))
        found = split(case.text, {(span.start, span.end, span.kind) for span in detect_pii(case.text).spans})
        for count, places in ((right, wanted & found), (missed, wanted - found), (wrong, found - wanted)):
            count.update(kind for *_, kind in places)
    return right, missed, wrong


def _words(text: str, places: set[Place]) -> set[Place]:
    words = [match.span() for match in re.finditer(r"\w+", text)]
    return {(*word, kind) for start, end, kind in places for word in words if word[0] < end and start < word[1]}


MEASURES: dict[str, Callable[[list[corpora.Labelled]], Counts]] = {
    "by overlap": overlapping,
    "to the letter": exact,
    "by word": by_word,
}


def scores(right: int, missed: int, wrong: int) -> str:
    precision, recall = right / max(1, right + wrong), right / max(1, right + missed)
    f1 = 2 * precision * recall / max(1e-9, precision + recall)
    return f"found {right}, missed {missed}, wrong {wrong}: precision {precision:.3f}, recall {recall:.3f}, F1 {f1:.3f}"


def share(part: int, whole: int) -> str:
    return f"{part / max(1, whole):6.1%} ({part}/{whole})"


if __name__ == "__main__":
    sys.exit(main())
