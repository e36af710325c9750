"""Refuse reading calls to outside hosts that would leak data: an untrusted address, or private data in the arguments.

Decided from the arguments and from what the run's models were shown (ADR 103). An address must come from the customer,
the company's records or its staff; words of private data may leave only if the customer said them too. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping

from apps.guard.enums import RefusalCode
from kernel.provenance import Origin, Source, Sources, leaves

_MAX_CHARS, _LONG_WORD, _SHORT_WORD = 20_000, 24, 4
# Every repetition is bounded: the text is a model's, and an unbounded one could make the search slow (ReDoS).
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
# An amount, a time or a date, which looks like a host.
_NUMBER = re.compile(r"\d*(?:[.,:]\d*){0,2}")
_WORD = re.compile(r"\w+")
_YEAR = re.compile(r"(?:19|20)\d\d")
# The words of these may leave: they are the request of the customer, or of the author of a task or plan.
_REQUESTERS = frozenset({Origin.VISITOR, Origin.AUTHOR})
_PRIVATE = frozenset({Origin.RECORDS, Origin.MEMORY, Origin.STAFF, Origin.MODEL})


def egress_refusal(args: Mapping[str, object], shown: Sources) -> RefusalCode | None:
    """Return why these arguments may not leave; None if they may."""
    texts = [str(value) for value in leaves(args) if value is not None and not isinstance(value, bool)]
    # An argument's name that is not a plain identifier was made up by the model and can carry data too.
    texts += [name for name in _names(args) if len(name) > _LONG_WORD or not name.isidentifier()]
    # Too long to be examined under the run's lock: refused, never let through unexamined.
    if sum(map(len, texts)) > _MAX_CHARS:
        return RefusalCode.SENDS_PRIVATE
    addresses = {address for text in texts for address in addresses_in(text)}
    if any(not shown.trace(address).is_vouched for address in addresses):
        return RefusalCode.SENDS_ELSEWHERE
    # The addresses are judged; their parts would otherwise count as words without a source.
    for address in addresses:
        texts = [text.replace(address, " ") for text in texts]
    return RefusalCode.SENDS_PRIVATE if _leaks(texts, shown) else None


def addresses_in(text: str) -> list[str]:
    """Return every web and e-mail address in a text; the whole text if it is a bare host."""
    whole = text.strip()
    if _BARE.fullmatch(whole) and not _NUMBER.fullmatch(whole):
        return [whole]
    return [match[0] for match in _ADDRESS.finditer(text)]


def _leaks(texts: Collection[str], shown: Sources) -> bool:
    """True if a word is from private data and was not said by the customer, or could encode anything while the models
    have read private data."""
    requested = _words_of(shown, lambda source: source.traced.origin in _REQUESTERS)
    private = _words_of(shown, lambda source: source.is_private or source.traced.origin in _PRIVATE)
    if not private:
        return False
    secret = {word for word in private - requested if len(word) > _SHORT_WORD}
    return any(
        # `part in word`: a private word with other letters around it leaks just as well.
        word not in requested and (word in private or _is_opaque(word) or any(part in word for part in secret))
        for text in texts
        for word in _words(text)
    )


def _is_opaque(word: str) -> bool:
    """True for a mix of letters and digits, a long number, or a very long word: it can encode anything."""
    has_digit = any(character.isdigit() for character in word)
    return len(word) > _LONG_WORD or (has_digit and not _YEAR.fullmatch(word))


def _words_of(shown: Sources, which: Callable[[Source], bool]) -> set[str]:
    return {word for source in shown.sources if which(source) for word in _words(source.text)}


def _words(text: str) -> set[str]:
    """Return the words that could carry information: no single letters, short words or small numbers."""
    words = (match.casefold() for match in _WORD.findall(text))
    return {word for word in words if (len(word) >= _SHORT_WORD if word.isalpha() else len(word) > 2)}


def _names(value: object) -> list[str]:
    if isinstance(value, Mapping):
        return [*map(str, value), *(name for part in value.values() for name in _names(part))]
    return [name for part in value for name in _names(part)] if isinstance(value, list | tuple) else []
