"""Find encoded pieces of a text and decode them with the common encodings. Pure.

Each character belongs to at most one piece of each encoding, so that the work stays in proportion to the text. Called
by `normalise` only.
"""

from __future__ import annotations

import base64
import binascii
import codecs
import html
import re
from collections.abc import Callable, Iterator
from typing import NamedTuple
from urllib.parse import unquote

# Words of everyday English and of attacks: two of them under a cipher are no accident.
_TELLING = """
about above all and answer any are assistant before developer dont follow from have ignore instruction instructions
message mode now output previous print prompt prompts reveal rules say show system tell that the them this with you your
"""
_MIRROR = str.maketrans("abcdefghijklmnopqrstuvwxyz", "zyxwvutsrqponmlkjihgfedcba")
_WORDS = re.compile(r"[a-z]{3,20}+")
_PERCENT = re.compile(r"%[0-9a-fA-F]{2}")
_ESCAPE = re.compile(r"\\u\{?([0-9a-fA-F]{4})\}?|\\x([0-9a-fA-F]{2})|=([0-9A-F]{2})")
_ENTITY = re.compile(r"&#?[0-9A-Za-z]{2,8}+;")
_ESCAPED = re.compile("|".join(each.pattern for each in (_PERCENT, _ENTITY, _ESCAPE)))
# No phrase reaches further.
_AROUND = 300
_MORSE_LETTERS = (
    ".- -... -.-. -.. . ..-. --. .... .. .--- -.- .-.. -- -. --- .--. --.- .-. ... - ..- ...- .-- -..- -.-- --.."
)
_MORSE = dict(zip(_MORSE_LETTERS.split(), "abcdefghijklmnopqrstuvwxyz", strict=True))


class Piece(NamedTuple):
    """A decoded text and where its encoded form stands."""

    text: str
    start: int
    end: int


def pieces(text: str, folded: str) -> Iterator[Piece]:
    """`folded` is the text in plain lower-case letters: ciphers work on letters, encodings on bytes."""
    for pattern, decode in _RUNS:
        for match in pattern.finditer(text):
            decoded = _readable(decode, match[0])
            if decoded:
                yield Piece(decoded, *match.span())
    yield from _escapes(text)
    yield from (Piece(changed, 0, len(text)) for changed in _ciphers(folded))


def _readable(decode: Callable[[str], bytes], encoded: str) -> str | None:
    try:
        decoded = decode(encoded).decode("utf-8")
    except (ValueError, binascii.Error):
        return None
    # The plain blank is the one character that is both.
    printable = sum(map(str.isprintable, decoded)) + sum(map(str.isspace, decoded)) - decoded.count(" ")
    return decoded if len(decoded) > 5 and printable > len(decoded) * 0.95 else None


def _escapes(text: str) -> Iterator[Piece]:
    """What stands around signs that are written as escapes, without them. Of a long text it is only that."""
    places: list[list[int]] = []
    for match in _ESCAPED.finditer(text):
        start, end = max(0, match.start() - _AROUND), min(len(text), match.end() + _AROUND)
        # Overlapping places become one, or many escapes side by side would be read many times over.
        if places and start <= places[-1][1]:
            places[-1][1] = end
        else:
            places.append([start, end])
    for start, end in places:
        changed = _unescaped(text[start:end])
        if changed != text[start:end]:
            yield Piece(changed, start, end)


def _unescaped(text: str) -> str:
    plain = html.unescape(unquote(text))
    return _ESCAPE.sub(lambda match: chr(int(match[1] or match[2] or match[3], 16)), plain)


def _ciphers(folded: str) -> Iterator[str]:
    """ROT13, the mirrored alphabet and writing backwards, when telling words appear under them."""
    words = _WORDS.findall(folded)
    for change, telling in _CIPHERS:
        if not telling.isdisjoint(words) and sum(word in telling for word in words) > 1:
            yield change(folded)


def _rot13(text: str) -> str:
    return codecs.encode(text, "rot13")


def _mirrored(text: str) -> str:
    return text.translate(_MIRROR)


def _backwards(text: str) -> str:
    return text[::-1]


def _telling_under(change: Callable[[str], str]) -> frozenset[str]:
    words = _TELLING.split()
    return frozenset(change(word) for word in words) - frozenset(words)


_CIPHERS = tuple((change, _telling_under(change)) for change in (_rot13, _mirrored, _backwards))


def _from_base64(run: str) -> bytes:
    whole = run.rstrip("=").replace("-", "+").replace("_", "/")
    # One letter over holds no byte; decoders refuse it, and the rest would stay unread.
    whole = whole[: len(whole) - (len(whole) % 4 == 1)]
    return base64.b64decode(whole + "=" * (-len(whole) % 4))


def _from_base32(run: str) -> bytes:
    whole = run.rstrip("=")
    return base64.b32decode(whole + "=" * (-len(whole) % 8))


def _from_hex(run: str) -> bytes:
    return bytes.fromhex(re.sub(r"\\x|0x|[\s:,%]", "", run))


def _from_bits(run: str) -> bytes:
    return bytes(int(byte, 2) for byte in run.split())


def _from_numbers(run: str) -> bytes:
    return bytes(int(number) for number in re.split(r"[,\s]++", run) if number)


def _from_morse(run: str) -> bytes:
    words = (word.split() for word in run.replace("|", "/").split("/"))
    return " ".join("".join(_MORSE.get(sign, "?") for sign in word) for word in words).encode()


_RUNS: tuple[tuple[re.Pattern[str], Callable[[str], bytes]], ...] = (
    (re.compile(r"(?<![A-Za-z0-9+/_=-])[A-Za-z0-9+/_-]{12,}+={0,2}+"), _from_base64),
    (re.compile(r"(?<![A-Za-z0-9=])[A-Z2-7]{16,}+={0,6}+"), _from_base32),
    (re.compile(r"(?<![0-9A-Za-z])(?:(?:\\x|0x|%)?+[0-9a-fA-F]{2}[\s:,]?+){8,}+"), _from_hex),
    (re.compile(r"[01](?<![01][01])[01]{7}\s?+(?:[01]{8}\s?+){4,}+"), _from_bits),
    (re.compile(r"\d(?<!\d\d)\d{1,2}+(?:(?:,\s?+|\s)\d{2,3}+){7,}+"), _from_numbers),
    (re.compile(r"[.-](?<![./|-].)(?:[./| -]){18,}+"), _from_morse),
)
PATTERNS = (*(pattern for pattern, _ in _RUNS), _ESCAPED, _ESCAPE, _WORDS)
