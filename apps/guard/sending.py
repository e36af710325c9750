"""What a read that leaves the house would give away: it is refused where somebody else chose the address, or where
private data would ride along (ADR 0104).

Decided from the arguments and from what the run's models were shown. Addresses are the customer's own words, the
company's records or its staff's; words that stand in private data leave only where the customer said them too. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Any

from apps.guard.enums import RefusalCode
from kernel.provenance import Origin, Sources, leaves

_MOST_CHARS, _LONG_WORD, _SHORT_WORD = 20_000, 24, 4
_ADDRESS = re.compile(
    r"\b[a-z][a-z0-9+.\-]{1,11}://[^\s<>\"']{1,4000}"
    r"|(?<![\w.\-])www\.[^\s<>\"']{1,4000}"
    r"|(?<![\w.+\-])[\w.+\-]{1,64}@[\w\-]{1,63}(?:\.[\w\-]{1,63}){1,5}",
    re.IGNORECASE,
)
# A host or an IP address as the whole of an argument, with a port or a path.
_BARE = re.compile(
    r"(?:[\w\-]{1,63}\.){1,8}[a-z][\w\-]{1,62}\.?(?::\d{1,5})?(?:/\S*)?|\[?(?=[0-9a-f]*[:.])[0-9a-f:.]{3,45}\]?(?::\d{1,5})?(?:/\S*)?",
    re.IGNORECASE,
)
# An amount, a time or a date, which looks like a host and is none.
_NUMBER = re.compile(r"\d*(?:[.,:]\d*){0,2}")
_WORD = re.compile(r"\w+")
_YEAR = re.compile(r"(?:19|20)\d\d")
# Whoever asks for something asks in words that may leave: the customer, and the author of a task or of a plan.
_ASKED = frozenset({Origin.VISITOR, Origin.AUTHOR})
_PRIVATE = frozenset({Origin.RECORDS, Origin.MEMORY, Origin.STAFF, Origin.MODEL})


def refusal(args: Mapping[str, Any], shown: Sources) -> RefusalCode | None:
    """Why these arguments may not leave; None when they may."""
    texts = [str(each) for each in leaves(args) if each is not None and not isinstance(each, bool)]
    # A name that is no plain word was chosen by whoever wrote the arguments.
    texts += [name for name in _names(args) if len(name) > _LONG_WORD or not name.isidentifier()]
    if sum(map(len, texts)) > _MOST_CHARS:
        return RefusalCode.SENDS_PRIVATE
    addresses = {address for text in texts for address in addresses_in(text)}
    if any(not shown.trace(address).is_vouched for address in addresses):
        return RefusalCode.SENDS_ELSEWHERE
    beside = [_without(addresses, text) for text in texts]
    return RefusalCode.SENDS_PRIVATE if _gives_away(beside, shown) else None


def addresses_in(text: str) -> list[str]:
    """Every address of the web or of mail in a text, and the text itself where it is a bare host."""
    whole = text.strip()
    if _BARE.fullmatch(whole) and not _NUMBER.fullmatch(whole):
        return [whole]
    return [found[0] for found in _ADDRESS.finditer(text)]


def _without(addresses: Collection[str], text: str) -> str:
    for address in addresses:
        text = text.replace(address, " ")
    return text


def _gives_away(texts: Collection[str], shown: Sources) -> bool:
    """A word of private data that the customer did not say themselves, or one that could be anything, while the models
    have private data before them."""
    said, private = _words_of(shown, _ASKED), _private_words(shown)
    if not private:
        return False
    telling = {word for word in private - said if len(word) > _SHORT_WORD}
    return any(
        word not in said and (word in private or _is_opaque(word) or any(part in word for part in telling))
        for text in texts
        for word in _words(text)
    )


def _is_opaque(word: str) -> bool:
    """Letters and digits mixed, a long number, or a word longer than words are: it can carry anything."""
    has_digit = any(each.isdigit() for each in word)
    return len(word) > _LONG_WORD or (has_digit and not _YEAR.fullmatch(word))


def _words_of(shown: Sources, origins: Collection[Origin]) -> set[str]:
    return {word for each in shown.sources if each.traced.origin in origins for word in _words(each.text)}


def _private_words(shown: Sources) -> set[str]:
    in_accounts = {word for each in shown.sources if each.is_private for word in _words(each.text)}
    return in_accounts | _words_of(shown, _PRIVATE)


def _words(text: str) -> set[str]:
    """What could tell something: no single letters, no short words, no small numbers."""
    found = (each.casefold() for each in _WORD.findall(text))
    return {word for word in found if (len(word) >= _SHORT_WORD if word.isalpha() else len(word) > 2)}


def _names(value: Any) -> list[str]:
    if isinstance(value, Mapping):
        return [*map(str, value), *(name for part in value.values() for name in _names(part))]
    return [name for part in value for name in _names(part)] if isinstance(value, list | tuple) else []
