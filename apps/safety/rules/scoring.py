"""Score an intended action from 0 to 100, with reasons, from its words, their combinations and known commands.

The most dangerous verb gives the base score and its objects raise it; a known command or action has its own score; of
all readings of a hint the highest score counts. A clause that begins with reading is a read: the words of its object,
what it quotes and what it searches for are data (`clauses`). A hint that names no known action is never harmless.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from apps.safety.enums import Tier
from apps.safety.rules.clauses import Clause, clauses_of, without_data
from apps.safety.rules.commands import ACTS, BIG_SUM, COMMANDS, GLUED, PATHS, SECRET_PLACES, WHERE_OUT, Command
from apps.safety.rules.table import BASE, BEFORE_A_VERB, MARKS, NOUNS_TOO, UNSAID, VERBS, Mark, Verb
from apps.safety.schemas import Hint, Score

_WORD = re.compile(r"[^\W_]+")
_GRAVEST = list(Verb)
_DISGUISED = 45
_ADVISORY, _CONFIRM, _VERIFY = 30, 60, 85
_VOWELS = "aeiou"


def tier_of(score: int) -> Tier:
    """Contract safety-loop 11."""
    if score <= _ADVISORY:
        return Tier.ADVISORY
    if score <= _CONFIRM:
        return Tier.CONFIRM
    return Tier.VERIFY if score <= _VERIFY else Tier.DANGER_ZONE


def score_hint(hint: Hint) -> Score:
    """Highest score of all readings of the hint. A disguised hint is never harmless."""
    best = _score(hint.plain)
    for reading in hint.readings:
        other = _score(reading)
        if other.value > best.value and other.value != UNSAID:
            best = other
    if not hint.disguises:
        return best
    reasons = tuple(f"It hides what it says: {disguise}." for disguise in hint.disguises)
    return Score(max(best.value, _DISGUISED), (*best.reasons, *reasons))


def _score(text: str) -> Score:
    clauses = _classified(text)
    acting = "".join(without_data(clause) if reads else clause.text for clause, reads in clauses)
    verbs = _verbs_of(clauses)
    marks = {mark for word in _WORD.findall(acting) for mark in _MARKS_OF.get(word, ())}
    _add_marks_of_text(text, acting, verbs, marks)
    known = [
        command
        for command in COMMANDS
        if any(part in acting for part in command.hints) and command.pattern.search(acting)
    ]
    # Words for reading can be part of such an action: open the safe, get cash out of it.
    known += [action for action in ACTS if action.pattern.search(acting)]
    if not verbs and not known:
        return Score(66 if Mark.SECRET in marks else UNSAID, ("It does not say what it does.",))
    return _weighed(max(verbs, key=_GRAVEST.index, default=None), marks, known, text)


def _classified(text: str) -> list[tuple[Clause, bool]]:
    """Clauses with whether they only read; without the text behind a search's colon, which is what is searched for."""
    classified: list[tuple[Clause, bool]] = []
    is_data = False
    for clause in clauses_of(text):
        if is_data:
            is_data = not clause.text.strip()
            continue
        reads = _reads(clause)
        classified.append((clause, reads))
        is_data = reads and clause.announces_search
    return classified


def _verbs_of(clauses: list[tuple[Clause, bool]]) -> set[Verb]:
    certain: set[Verb] = set()
    doubtful: set[Verb] = set()
    for clause, reads in clauses:
        if reads:
            # A verb that is an option of the command still acts: find . -delete
            certain |= {Verb.READ} | {_VERB_OF[word] for word in clause.options if word in _VERB_OF}
            continue
        for verb, is_certain in _verbs_in(clause):
            if verb is Verb.READ and clause.imperative and clause.imperative not in _VERB_OF:
                continue
            (certain if is_certain else doubtful).add(verb)
    return certain or doubtful


def _verbs_in(clause: Clause) -> Iterator[tuple[Verb, bool]]:
    """Yield the verbs of a clause in order; not certain where the word is as often a noun."""
    words = _WORD.findall(clause.text)
    for at, word in enumerate(words):
        if (verb := _VERB_OF.get(word)) is not None:
            yield verb, not (word in _NOUNS and at and words[at - 1] not in _BEFORE_A_VERB)


def _reads(clause: Clause) -> bool:
    """True when the first thing that the clause does is to read."""
    if clause.is_reading_command or clause.is_question:
        return True
    if clause.imperative and clause.imperative not in _VERB_OF:
        return False
    outside = Clause(without_data(clause))
    return next((verb for verb, is_certain in _verbs_in(outside) if is_certain), None) is Verb.READ


def _add_marks_of_text(text: str, acting: str, verbs: set[Verb], marks: set[Mark]) -> None:
    """Add what single words do not show. `acting` is the text without data; paths and secrets count anywhere."""
    if glued := GLUED.search(acting):
        verbs.add(Verb.DESTROY)
        marks.add(Mark.BLAST if glued[2] in ("all", "every", "prod") else Mark.STORE)
    if ("/" in text or "\\" in text or "~" in text) and PATHS.search(text):
        marks.add(Mark.PLACE)
    if ("//" in text or "@" in text) and WHERE_OUT.search(text):
        marks.add(Mark.OUTSIDE)
    if SECRET_PLACES.search(text):
        marks.add(Mark.SECRET)


def _weighed(verb: Verb | None, marks: set[Mark], known: list[Command], text: str) -> Score:
    value = _in_company(verb, marks, text) if verb else 0
    reasons = [f"It {verb}."] if verb else []
    reasons += [f"It {mark}." for mark in Mark if mark in marks]
    for command in sorted(known, key=lambda each: each.score):
        reasons.insert(0, f"It {command.reason}.")
        value = max(value, command.score)
    if known and value > _CONFIRM and marks & {Mark.LIVE, Mark.BLAST}:
        value = max(value, 88)
    return Score(value, tuple(dict.fromkeys(reasons)))


def _in_company(verb: Verb, marks: set[Mark], text: str) -> int:
    """The verb's base, raised by what it concerns: for each verb its rows of the table, of which the gravest counts."""
    if verb is Verb.DESTROY and Mark.SOFT in marks and not marks & _HARD:
        return 45
    if verb is Verb.RUN and Mark.TESTS in marks and not marks & {Mark.LIVE, Mark.FORCED, Mark.OUTSIDE}:
        return 20
    value = BASE[verb]
    for wanted, raised in _RAISED[verb]:
        if raised > value and wanted <= marks:
            value = raised
    if verb is Verb.MONEY and BIG_SUM.search(text):
        value = max(value, 78)
    return value


_HARD = frozenset({Mark.BLAST, Mark.LIVE, Mark.FORCED, Mark.PLACE, Mark.SAFEGUARD, Mark.SECRET, Mark.STORE})


def _rows(*rows: tuple[int, Iterable[Mark]]) -> tuple[tuple[frozenset[Mark], int], ...]:
    return tuple((frozenset(marks), value) for value, marks in rows)


_M = Mark
# Score of each verb when all of these marks occur together (docs/safety.md shows it as a table).
_RAISED = {
    Verb.READ: _rows(
        (35, [_M.PLACE]),
        (66, [_M.SECRET]),
        (66, [_M.PEOPLE, _M.OUTSIDE]),
        (66, [_M.RECORDS, _M.OUTSIDE, _M.BLAST]),
        (90, [_M.SECRET, _M.OUTSIDE]),
    ),
    Verb.CREATE: _rows(
        (35, [_M.STORE]),
        (35, [_M.BLAST]),
        (45, [_M.LIVE]),
        (50, [_M.OUTSIDE]),
        (64, [_M.PLACE]),
        (64, [_M.SECRET]),
        (66, [_M.BLAST, _M.LIVE]),
        (88, [_M.PEOPLE, _M.OUTSIDE]),
        (90, [_M.SECRET, _M.OUTSIDE]),
    ),
    Verb.CHANGE: _rows(
        (66, [_M.BLAST]),
        (66, [_M.FORCED]),
        (66, [_M.SAFEGUARD]),
        (70, [_M.LIVE]),
        (70, [_M.SECRET]),
        (72, [_M.PLACE]),
        (80, [_M.BLAST, _M.LIVE]),
        (88, [_M.FORCED, _M.LIVE]),
    ),
    Verb.RUN: _rows(
        (64, [_M.BLAST]),
        (64, [_M.FORCED]),
        (68, [_M.PLACE]),
        (70, [_M.LIVE]),
        (70, [_M.SECRET]),
        (88, [_M.SECRET, _M.OUTSIDE]),
    ),
    Verb.SEND: _rows(
        (55, [_M.OUTSIDE]),
        (62, [_M.LIVE]),
        (66, [_M.PEOPLE]),
        (68, [_M.BLAST]),
        (88, [_M.SECRET]),
        (88, [_M.PEOPLE, _M.OUTSIDE]),
        (88, [_M.STORE, _M.OUTSIDE]),
        (88, [_M.RECORDS, _M.OUTSIDE, _M.BLAST]),
    ),
    Verb.ACCESS: _rows(
        (80, [_M.LIVE]),
        (80, [_M.SECRET]),
        (80, [_M.SAFEGUARD]),
        (88, [_M.BLAST]),
        (88, [_M.OUTSIDE]),
        (88, [_M.PLACE]),
    ),
    Verb.MONEY: _rows((80, [_M.OUTSIDE]), (90, [_M.BLAST]), (90, [_M.FORCED])),
    Verb.DESTROY: _rows(
        (74, [_M.RECORDS]),
        (80, [_M.STORE]),
        (88, [_M.SECRET]),
        (90, [_M.FORCED]),
        (92, [_M.BLAST]),
        (92, [_M.LIVE]),
        (92, [_M.PLACE]),
        (92, [_M.SAFEGUARD]),
    ),
}


def _forms(word: str) -> Iterator[str]:
    """Yield the inflected forms of a verb: deletes, deleted, deleting."""
    yield word
    yield word + ("es" if word.endswith(("s", "sh", "ch", "x", "z")) else "s")
    if word.endswith("y") and word[-2] not in _VOWELS:
        yield from (word[:-1] + "ies", word[:-1] + "ied", word + "ing")
        return
    stem = word[:-1] if word.endswith("e") else word
    yield from (stem + "ed", stem + "ing")
    if len(word) >= 3 and word[-1] not in "aeiouwxy" and word[-2] in _VOWELS:
        yield from (word + word[-1] + "ed", word + word[-1] + "ing")


def _misspelt(word: str) -> Iterator[str]:
    """Yield misspellings: two letters swapped, one missing, one doubled; never the first letter."""
    for at in range(1, len(word) - 1):
        yield word[:at] + word[at + 1] + word[at] + word[at + 2 :]
        yield word[:at] + word[at + 1 :]
        yield word[:at] + word[at] + word[at:]


_NOMINAL = {
    Verb.DESTROY: "deletion deletions removal removals erasure destruction termination truncation overwritten gone",
    Verb.MONEY: "payment payments purchase withdrawal reimbursement paid spent bought sold",
    Verb.SEND: "sent told",
    Verb.CHANGE: "hidden chosen made",
    Verb.RUN: "ran deployment installation",
}


def _vocabulary() -> dict[str, Verb]:
    """Map every form of every verb, and misspellings of dangerous ones that are no other word, to its verb."""
    known: dict[str, Verb] = {}
    for verb, words in VERBS.items():
        for word in words.split():
            for form in _forms(word):
                known[form] = verb
    known |= {word: verb for verb, words in _NOMINAL.items() for word in words.split()}
    taken = known.keys() | {word for words in MARKS.values() for word in words.split()} | _NO_MISTAKES
    for verb in (Verb.DESTROY, Verb.MONEY, Verb.ACCESS):
        grave = [form for word in VERBS[verb].split() if len(word) >= 6 for form in _forms(word)]
        known |= {wrong: verb for form in grave for wrong in _misspelt(form) if wrong not in taken}
    return known


_NO_MISTAKES = frozenset(["evoke", "evoked", "promoted", "prompt", "prompts", "expose", "witdraw", "unlock"])
_VERB_OF = _vocabulary()
_MARKS_OF: dict[str, tuple[Mark, ...]] = {}
for _mark, _words in MARKS.items():
    for _word in _words.split():
        _MARKS_OF[_word] = (*_MARKS_OF.get(_word, ()), _mark)
_NOUNS = {form for word in NOUNS_TOO.split() for form in (word, word + "s")}
_BEFORE_A_VERB = frozenset(BEFORE_A_VERB.split())
