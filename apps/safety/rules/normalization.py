"""Normalise a hint, and decode what is hidden in it.

Invisible characters go, look-alike letters become the Latin ones they imitate, spaces become one, and what is encoded
(percent, backslash, HTML, hex, base64) is decoded into further readings. Linear in the hint's length; no Django here.
"""

from __future__ import annotations

import base64
import binascii
import html
import re
import unicodedata
from urllib.parse import unquote

from apps.safety.schemas import Hint

# Look-alikes that NFKC leaves alone, by the Latin letter they imitate (Cyrillic, Greek, Armenian, Latin extensions).
_LOOK_ALIKES = {
    "a": "аɑα",
    "b": "ьƅЬ",
    "c": "сϲⅽ",
    "d": "ԁɗ",
    "e": "еєεҽ",
    "f": "ғƒ",
    "g": "ɡց",
    "h": "һհ",
    "i": "іιıɩ",
    "j": "јϳ",
    "k": "кκ",
    "l": "ӏⅼɭǀ",
    "m": "мⅿ",
    "n": "ոпη",
    "o": "оοσօ",
    "p": "рρ",
    "q": "ԛզ",
    "r": "гɾ",
    "s": "ѕꜱ",
    "t": "тτ",
    "u": "υսц",
    "v": "νѵ",
    "w": "ԝωѡ",
    "x": "хχ",
    "y": "уүγ",
    "z": "ᴢʐ",
    "-": "‐‑‒–—―−",
    "/": "∕⁄",
}
_FOLDED = {ord(odd): plain for plain, odds in _LOOK_ALIKES.items() for odd in odds}
_LEET = str.maketrans({"0": "o", "1": "l", "3": "e", "4": "a", "5": "s", "7": "t", "@": "a", "$": "s"})

_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_SPACED = re.compile(r"(?<![^\W_])(?:[^\W_][ ._*+|-]{1,2}){3,}[^\W_](?![^\W_])")
_LEET_WORD = re.compile(r"\b(?=\w*[a-z@$])(?=\w*[0134577@$])[a-z0134577@$]{3,24}(?![\w@$])")
_ESCAPES = re.compile(r"\\x([0-9a-f]{2})|\\u00([0-9a-f]{2})|\\([0-7]{3})", re.IGNORECASE)
_BASE64 = re.compile(r"(?<![\w+/=-])[A-Za-z0-9+/_-]{8,}={0,2}(?![\w+/=])")
_HEX = re.compile(r"(?<![0-9a-z])(?:0x)?((?:[0-9a-f]{2}[ :]?){3,}[0-9a-f]{2})(?![0-9a-z])", re.IGNORECASE)
_SPLIT_QUOTES = re.compile(r"(?<=[a-z])(?:''|\"\"|\\|\$@|`{2})(?=[a-z])", re.IGNORECASE)
_QUOTES = ("''", '""', "\\", "$@", "``", "/*")
_WIDE = re.compile(r"\s{2,}")
_BETWEEN = re.compile(r"[ ._*+|-]")
_COMMENTS = re.compile(r"/\*[^*]{0,40}\*/")
_ROUNDS = 3
_MAX_READINGS = 8
_PLAIN = re.compile(r"[ -~\t\r\n]*\Z")


def read_hint(text: str) -> Hint:
    """Return the normalised hint with its further readings and what it hides."""
    disguises: list[str] = []
    shown = _visible(text, disguises)
    plain = _one_space(_CAMEL.sub(" ", shown).lower())
    readings = [_one_space(shown.lower())]
    readings += [*_set_apart(shown), *_decoded(shown, disguises)]
    for reading in [plain, *readings]:
        readings += _closed_up(reading, disguises)
    unique = [reading for reading in dict.fromkeys(readings) if reading != plain]
    return Hint(plain, tuple(unique[:_MAX_READINGS]), tuple(dict.fromkeys(disguises)))


def canonical_text(text: str) -> str:
    """Canonical spelling that globs match: visible characters, single spaces, lower case, names unsplit."""
    return _one_space(_visible(text, []).lower())


def _visible(text: str, disguises: list[str]) -> str:
    if _PLAIN.match(text):
        return text
    composed = unicodedata.normalize("NFKC", text)
    kept = "".join(character for character in composed if not _is_invisible(character))
    if len(kept) != len(composed):
        disguises.append("invisible characters")
    bare = "".join(
        character for character in unicodedata.normalize("NFD", kept) if not unicodedata.combining(character)
    )
    folded = bare.lower().translate(_FOLDED)
    if _mixes_scripts(bare.lower(), folded):
        disguises.append("letters that imitate others")
        return folded
    # Case separates words (camelCase), so it is kept where no letter was replaced.
    return bare if folded == bare.lower() else folded


def _is_invisible(character: str) -> bool:
    is_control = unicodedata.category(character) in ("Cf", "Cc", "Co", "Cn")
    return (is_control and character not in "\t\n\r") or character in "ᅟᅠㅤ͏"


def _mixes_scripts(before: str, after: str) -> bool:
    """True for a Latin word with look-alike letters in it; a real Cyrillic or Greek word does not fold to ASCII."""
    if len(before) != len(after):
        return before != after
    position = 0
    for word in re.split(r"(\W+)", before):
        turned = after[position : position + len(word)]
        position += len(word)
        if turned != word and turned.isascii() and any(character.isalpha() for character in turned):
            return True
    return False


def _one_space(text: str) -> str:
    return " ".join(text.split())


def _decoded(text: str, disguises: list[str]) -> list[str]:
    """Texts encoded in the hint, or in a word of it, at most three layers deep."""
    texts: list[str] = []
    layer = [text]
    for _ in range(_ROUNDS):
        layer = [inner for outer in layer for inner in _one_layer(outer, disguises)]
        if not layer:
            break
        texts += [_one_space(_CAMEL.sub(" ", _visible(text, [])).lower()) for text in layer[:_MAX_READINGS]]
    return texts


def _one_layer(text: str, disguises: list[str]) -> list[str]:
    whole = text
    if "%" in whole:
        whole = unquote(whole, errors="ignore")
    if "&" in whole and ";" in whole:
        whole = html.unescape(whole)
    if "\\" in whole:
        whole = _ESCAPES.sub(_unescaped, whole)
    inside = [*_base64_words(whole), *_hex_words(whole)]
    if whole != text or inside:
        disguises.append("encoded text")
    return [decoded for decoded in [whole, *inside] if decoded != text]


def _unescaped(match: re.Match[str]) -> str:
    hexes, wide, octal = match.groups()
    return chr(int(octal, 8) if octal else int(hexes or wide, 16))


def _base64_words(text: str) -> list[str]:
    return [decoded for word in _BASE64.findall(text) if (decoded := _from_base64(word))]


def _from_base64(word: str) -> str:
    bare = word.rstrip("=").replace("-", "+").replace("_", "/")
    if bare.isalpha() and (bare.islower() or bare.isupper() or bare.istitle()):
        return ""
    try:
        return _text(base64.b64decode(bare + "=" * (-len(bare) % 4), validate=True))
    except (binascii.Error, ValueError):
        return ""


def _hex_words(text: str) -> list[str]:
    words = [re.sub(r"[ :]", "", match) for match in _HEX.findall(text)]
    return [decoded for word in words if (decoded := _text(bytes.fromhex(word)))]


def _text(raw: bytes) -> str:
    """Decode the bytes, or return "" when they are not readable text."""
    for encoding in ("utf-8", "utf-16-le"):
        try:
            text = raw.decode(encoding)
        except UnicodeDecodeError:
            continue
        if len(text) >= 3 and _PLAIN.match(text) and sum(character.isalpha() for character in text) * 2 >= len(text):
            return text
    return ""


def _set_apart(text: str) -> list[str]:
    """Join spelled-out letters (d r o p) where words are separated by more than one space."""
    chunks = _WIDE.split(text.strip())
    if len(chunks) < 2 or not _SPACED.search(text):
        return []
    return [" ".join(_SPACED.sub(_joined, chunk) for chunk in chunks).lower()]


def _joined(match: re.Match[str]) -> str:
    return _BETWEEN.sub("", match[0])


def _closed_up(text: str, disguises: list[str]) -> list[str]:
    """The text without separators inside words, and with digits read as the letters that they imitate."""
    readings = []
    closed = _SPACED.sub(_joined, text)
    if any(quote in closed for quote in _QUOTES):
        closed = _SPLIT_QUOTES.sub("", _COMMENTS.sub("", closed))
    if closed != text:
        disguises.append("letters set apart")
        readings.append(closed)
    spelled = _LEET_WORD.sub(lambda match: match[0].translate(_LEET), closed)
    if spelled != closed:
        readings.append(spelled)
    return readings
