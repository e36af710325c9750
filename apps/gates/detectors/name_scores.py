"""Score how likely a capitalised word is part of a person's name, as a sum of weighted features. Pure.

Signs are the lists a word and its neighbours are in, its letters, and what stands around it and its run; then the
words of a run, and the things of a list, speak for each other. The weights of `tables/name_weights.txt` are fitted by
tools/tune_names.py. Work: a few looks at each word. Called by `names`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, lru_cache

from apps.gates.detectors.cues import CUES
from apps.gates.detectors.lexicon import LISTS
from apps.gates.detectors.normalise import TABLES
from apps.gates.detectors.tokens import JOINTS, OWNED, PLACES, Run, Token, TokenizedText

_ENDINGS = tuple(sorted(CUES["endings"], key=len))
_STREETS, _FIRMS, _DID = CUES["streets"], CUES["firms"], CUES["did"]
# The classes of words that matter by themselves, on the left of a word or a run, and on its right.
_ITSELF = {"firms": _FIRMS, "towns": CUES["towns"], "no name": CUES["no_names"], "title": CUES["titles"]}
_BEFORE_IT = ("at", "to", "by", "and", "am", "of", "the", "mine", "beside", "firmly")
_BEHIND_IT = ("does", "and", "his", "beside", "lands", "trades", "lives", "works")
# Names with a capital inside: `McDonald`, `DiMaggio`, `LeBron`.
_INNER = ("mc", "ma", "de", "di", "la", "le", "va", "fi")
# How much the others of a run, and of a list, have to say; and the most that one of them says.
_RUN, _LIST, _MOST = 0.4, 0.9, 3.0
_NEVER, _SHOUTED = -5.0, -1.0

# One look at a word: which signs it may give, and what it sees.
Look = tuple[Callable[..., Iterator[str]], tuple[str | int | bool, ...]]


def score_names(parsed: TokenizedText) -> Mapping[int, float]:
    """For the number of each word with a capital, the logarithm of the odds that it is part of a person's name."""
    places = ((chain, run, number) for chain in parsed.chains for run in chain for number in run.members)
    return smooth_scores(parsed, {number: _alone(parsed, number, run, chain) for chain, run, number in places})


def features(parsed: TokenizedText, number: int, run: Run, chain: Sequence[Run]) -> Iterator[str]:
    """What speaks for and against a name: the word itself, its neighbours, and what of an address is in reach."""
    for look, seen in _looks(parsed, number, run, chain):
        yield from look(*seen)


def _alone(parsed: TokenizedText, number: int, run: Run, chain: Sequence[Run]) -> float:
    word = parsed.words[number]
    if not word.may_be_name:
        return _NEVER if word.kind == "word" else _SHOUTED
    return sum(_weight(look, seen) for look, seen in _looks(parsed, number, run, chain))


@lru_cache(maxsize=16_384)
def _weight(look: Callable[..., Iterator[str]], seen: tuple[str | int | bool, ...]) -> float:
    """Most looks see what others saw before."""
    weights = _weights()
    return sum(weights.get(sign, 0.0) for sign in look(*seen))


@cache
def _weights() -> Mapping[str, float]:
    lines = (TABLES / "name_weights.txt").read_text("utf-8").splitlines()
    pairs = (line.rpartition(" ") for line in lines if not line.startswith("#"))
    return {sign: int(weight) / 100 for sign, _, weight in pairs}


def smooth_scores(parsed: TokenizedText, odds: Mapping[int, float]) -> dict[int, float]:
    """Words of a run are mostly all of one name or none, and so are the things of a list."""
    found: dict[int, float] = {}
    for chain in parsed.chains:
        means = [_within(run, odds, found) for run in chain]
        if len(chain) == 1:
            continue
        total, share = sum(means), _LIST / len(chain)
        for run, mean in zip(chain, means, strict=True):
            told = share * (total - mean)
            for number in run.members:
                found[number] += told
    return found


def _within(run: Run, odds: Mapping[int, float], found: dict[int, float]) -> float:
    """Lets the words of a run speak for each other; the mean of what comes out."""
    if len(run.members) == 1:
        (number,) = run.members
        found[number] = odds[number]
        return _bounded(odds[number])
    said = [_bounded(odds[number]) for number in run.members]
    total, others = sum(said), max(1, len(said) - 1)
    for number, own in zip(run.members, said, strict=True):
        found[number] = odds[number] + _RUN * (total - own) / others
    return sum(_bounded(found[number]) for number in run.members) / len(said)


def _bounded(odds: float) -> float:
    return max(-_MOST, min(_MOST, odds))


def _looks(parsed: TokenizedText, number: int, run: Run, chain: Sequence[Run]) -> Iterator[Look]:
    text, words = parsed.text, parsed.words
    word = words[number]
    yield _own, (word.text, word.low, word.lists, word.kind, word.begins)
    if number and not word.begins:
        yield _before(text, words, number)
    yield _behind(text, word, words[number + 1] if number + 1 < len(words) else None)
    if len(run.members) > 1 or run.last + 1 < len(words):
        yield _around(parsed, number, run)
    if len(chain) > 1:
        yield _listed, (_leading(words, chain[0]), len(chain) > 2, run.first == chain[0].first)
    if parsed.behind[number] or parsed.ahead[number]:
        yield _near_address, (parsed.behind[number], parsed.ahead[number])
    if len(parsed.figured) > 1:
        line = parsed.lines[number]
        above = line > 0 and parsed.figured[line - 1]
        yield (
            _lines,
            (parsed.figured[line], above, line + 1 < len(parsed.figured) and parsed.figured[line + 1]),
        )


def _own(text: str, low: str, lists: int, kind: str, begins: bool) -> Iterator[str]:
    place = "first" if begins else "inside"
    yield from ("any", place, f"{place} {kind}")
    yield from (name for bit, name in enumerate(LISTS) if lists >> bit & 1)
    yield from _letters(low, "known" if lists else "strange")
    yield from (sign for sign, members in _ITSELF.items() if low in members)
    if len(text) == 1:
        yield "letter"
    elif low.endswith(_ENDINGS) and len(low) > 4:
        yield "ending"
    if "-" in text:
        yield "hyphen"
    elif len(text) > 3 and text.isalpha() and not text[1:].islower() and not low.startswith(_INNER):
        yield "camel"
    if Token(text, 0, 0, low, lists, kind, begins).is_street:
        yield "street"


def _letters(low: str, known: str) -> Iterator[str]:
    """How it begins and ends: what says most about a word that no list knows."""
    framed = f"^{low}$"
    yield from (f"{known} ends {framed[-length:]}" for length in (3, 4, 5))
    yield from (f"{known} begins {framed[:length]}" for length in (3, 4))


def _before(text: str, words: Sequence[Token], number: int) -> Look:
    word, before = words[number], words[number - 1]
    gap = text[before.end : word.start]
    if gap in JOINTS and before.kind and not before.opens:
        return _after_capital, (before.kind, before.low, bool(word.lists & PLACES))
    far = words[number - 2].low if number > 1 else ""
    if "&" in gap:
        return _after_small, ("&", "", "", False)
    return _after_small, (before.low if gap in JOINTS else "", far, _mark(gap), bool(before.kind) and not before.opens)


def _mark(gap: str) -> str:
    return gap if gap == ", " else ":" if ":" in gap else "" if gap in JOINTS else "|"


def _after_capital(kind: str, low: str, is_place: bool) -> Iterator[str]:
    yield f"after {kind}"
    if low in CUES["titles"]:
        yield "after title"
    if low in CUES["towns"]:
        yield "after town place" if is_place else "after town"
    if low in CUES["lands"]:
        yield "after lands"


def _after_small(small: str, far: str, mark: str, is_capital: bool) -> Iterator[str]:
    if small == "&":
        yield "beside &"
        return
    yield from (f"after {name}" for name in _BEFORE_IT if small in CUES[name])
    yield from (f"after {name}" for name in ("titles", "lands") if small in CUES[name])
    yield from _two_left(small, far)
    if small.endswith("ed") or small in _DID:
        yield "after deed"
    if small == "and" or (mark == ", " and is_capital):
        yield "in a list"
    if mark == ":":
        yield "after colon"


def _two_left(small: str, far: str) -> Iterator[str]:
    """`shouted at` is no place, `University of` leads to one."""
    if small == "of" and (far in CUES["lands"] or far in CUES["seats"]):
        yield "after seat of"
    elif small in {"of", "to"} and far in CUES["works"]:
        yield "after works of"
    elif small == "of" and far in CUES["firmly"]:
        yield "after firmly of"
    elif small in {"to", "from", "in", "for"} and far in CUES["goes"]:
        yield f"after going {small}"
    elif small in {"at", "to", "with", "for"} and (far.endswith("ed") or far in _DID):
        yield f"after deed {small}"


def _behind(text: str, word: Token, after: Token | None) -> Look:
    is_owner, rest = word.text.endswith(OWNED), text[word.end : word.end + 2]
    if rest[:1] == ".":
        rest = ".a" if rest[1:].islower() else "."
    if after is None or "\n" in text[word.end : after.start]:
        return _ahead_of, (is_owner, rest, "", "", "")
    gap = text[word.end : after.start]
    gap = " " if gap in JOINTS else gap if gap == ", " else "&" if "&" in gap else ""
    return _ahead_of, (
        is_owner,
        rest[:2] if rest == ", " else rest[:1] if rest != ".a" else rest,
        gap,
        after.kind,
        after.low,
    )


def _ahead_of(is_owner: bool, rest: str, gap: str, kind: str, low: str) -> Iterator[str]:
    """What follows: `rest` are the signs directly behind the word, `gap` all until the next word of its line."""
    if is_owner:
        yield "owns"
    if rest in {":", ".a", "\n", ""}:
        yield {":": "before colon", ".a": "domain"}.get(rest, "ends line")
    if rest in {"?", "!"} or (rest == ", " and low in CUES["asks"]):
        yield "called"
    if gap == "&":
        yield "beside &"
    elif gap == ", " and kind:
        yield f"list {kind}"
    elif gap == " " and kind:
        yield from _ahead_of_capital(is_owner, kind, low)
    elif gap == " ":
        yield from _ahead_of_small(low)


def _ahead_of_capital(is_owner: bool, kind: str, low: str) -> Iterator[str]:
    yield f"before {kind}"
    if low in _STREETS or low in _FIRMS:
        yield "before firm"
    if is_owner:
        yield "owns a capital"


def _ahead_of_small(low: str) -> Iterator[str]:
    yield from (f"before {name}" for name in _BEHIND_IT if low in CUES[name])
    if low.endswith("ed") or low in _DID:
        yield "before deed"


def _around(parsed: TokenizedText, number: int, run: Run) -> Look:
    """What stands before and behind the run that the word is in, where that is no neighbour of its own."""
    words, last = parsed.words, run.last
    first = words[run.first]
    before = words[run.first - 1].low if run.first < number and run.first and not first.begins else ""
    after = words[last + 1] if last + 1 < len(words) else None
    kin = after.low if after else ""
    if kin in {"and", "y", "et", "und"}:
        kin = words[last + 2].low if last + 2 < len(words) else ""
    is_next = after is not None and last > number and parsed.text[words[last].end : after.start] == " "
    kin = kin if kin in CUES["kin"] else ""
    return _outside, (before, kin, words[last].low if last > number else "", after.low if after and is_next else "")


def _outside(before: str, kin: str, last: str, after: str) -> Iterator[str]:
    yield from (f"run after {name}" for name in _BEFORE_IT if before in CUES[name])
    yield from (f"run before {name}" for name in _BEHIND_IT if after in CUES[name])
    if kin:
        yield "run and sons"
    if last in _FIRMS:
        yield "run of a firm"


def _leading(words: Sequence[Token], run: Run) -> str:
    return words[run.first - 1].low if run.first and not words[run.first].begins else ""


def _listed(before: str, are_many: bool, is_first: bool) -> Iterator[str]:
    """What leads to the first thing of a list leads to all of them."""
    if not is_first:
        yield from (f"list after {name}" for name in _BEFORE_IT if before in CUES[name])
        if before.endswith("ed") or before in _DID:
            yield "list after deed"
    if are_many:
        yield "of many"


def _near_address(behind: str, ahead: str) -> Iterator[str]:
    if behind:
        yield f"comes from {behind}"
    if ahead:
        yield f"leads to {ahead}"


def _lines(here: bool, above: bool, below: bool) -> Iterator[str]:
    """Names stand above an address, towns and countries below its first figures."""
    yield from (sign for sign, holds in (("in line", here), ("above", above), ("below", below)) if holds)
