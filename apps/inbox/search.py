"""Parse what staff type into the inbox's search into full-text queries. Pure.

Input is text: it becomes operands inside quotes, never operators. The last word may be unfinished, so each is a prefix;
a name tolerates one typing error, a long one two.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

LONGEST = 200
MOST_WORDS = 16
# Shorter beginnings would ask for half of everything that was ever said.
_SHORTEST_BEGINNING = 2
_SHORTEST_FORGIVEN, _LONG = 4, 8
_PART = re.compile(r'(-?)(?:"([^"]*)"|(\S+))')
# As `sessions_grams` has it: everything that is no sign of ASCII belongs to a word.
_LETTERS = re.compile(r"[^\x00-\x2f\x3a-\x40\x5b-\x60\x7b-\x7f]+")


def said(text: str) -> str:
    """`text` for `to_tsquery`: every word or the beginning of one, `"words together"` as they stand, `-word` left out.
    Empty where nothing is asked for."""
    parts = [_operand(*found.groups()) for found in _PART.finditer(_plain(text))]
    wanted = [part for part in parts if part]
    return " & ".join(wanted[:MOST_WORDS]) if any(not part.startswith("!") for part in wanted) else ""


def grams(word: str) -> list[str]:
    """The pieces of three letters that a word has, with its beginning marked by spaces; as the database has them."""
    marked = f"  {word.lower()}"
    return sorted({marked[at : at + 3] for at in range(len(marked) - 2)})


def contact(text: str) -> str:
    """`text` for a comparison with `contact`: every word is in a name or a customer's number, at the beginning of one
    of its words or, from three letters on, within. Empty if the text is too unspecific."""
    words = names_in(text)[:MOST_WORDS]
    return " & ".join(_gram_query(word) for word in words)


def near(text: str) -> list[str]:
    """The pieces that a name has some of which is not spelt quite like this; none where nothing is forgiven."""
    words = [word for word in names_in(text)[:MOST_WORDS] if len(word) >= _SHORTEST_FORGIVEN]
    return sorted({gram for word in words for gram in grams(word)})


def names_in(text: str) -> list[str]:
    return [word.lower() for word in _LETTERS.findall(_plain(text))]


def is_alike(text: str, name: str) -> bool:
    """Whether each word of `text` begins a word of `name`, typing errors forgiven."""
    there = names_in(name)
    return all(any(_errors(word, other) <= _forgiven(word) for other in there) for word in names_in(text))


def quoted(pieces: Iterable[str]) -> list[str]:
    """Each word as one quoted operand of a `tsquery`."""
    return ["'" + piece.replace("\\", "\\\\").replace("'", "''") + "'" for piece in pieces]


def _plain(text: str) -> str:
    return text.replace("\0", "")[:LONGEST]


def _operand(no: str, phrase: str | None, word: str | None) -> str:
    together = " ".join((phrase or "").split())
    text = together or (word or "").strip("\"'")
    if not _LETTERS.search(text):
        return ""
    (operand,) = quoted([text])
    if no:
        return f"!{operand}"
    return operand if together or len(text) < _SHORTEST_BEGINNING else f"{operand}:*"


def _gram_query(word: str) -> str:
    """At the beginning of a word, or within one."""
    begun = "(" + " & ".join(quoted(grams(word))) + ")"
    within = [gram for gram in grams(word) if not gram.startswith(" ")]
    return f"({begun} | ({' & '.join(quoted(within))}))" if within else begun


def _forgiven(word: str) -> int:
    return 0 if len(word) < _SHORTEST_FORGIVEN else 1 if len(word) < _LONG else 2


def _errors(word: str, other: str) -> int:
    """How many letters are wrong, missing, too many or changed about in `word` as the beginning of `other`."""
    before: list[int] = []
    row = list(range(len(other) + 1))
    for at, letter in enumerate(word, 1):
        before, last, row = row, before, [at]
        for place, its in enumerate(other, 1):
            cost = min(before[place] + 1, row[place - 1] + 1, before[place - 1] + (letter != its))
            if last and place > 1 and letter == other[place - 2] and word[at - 2] == its:
                cost = min(cost, last[place - 2] + 1)
            row.append(cost)
    return min(row)
