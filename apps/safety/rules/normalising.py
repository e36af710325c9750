"""What does a hint say once nobody hides anything in it?

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
_MOST_READINGS = 8
_PLAIN = re.compile(r"[ -~\t\r\n]*\Z")


def read(text: str) -> Hint:
    """The hint, and what else it can be read as."""
    disguises: list[str] = []
    shown = _visible(text, disguises)
    plain = _one_space(_CAMEL.sub(" ", shown).lower())
    readings = [_one_space(shown.lower())]
    readings += [*_set_apart(shown), *_decoded(shown, disguises)]
    for each in [plain, *readings]:
        readings += _closed_up(each, disguises)
    unique = [each for each in dict.fromkeys(readings) if each != plain]
    return Hint(plain, tuple(unique[:_MOST_READINGS]), tuple(dict.fromkeys(disguises)))


def subject_of(text: str) -> str:
    """What a glob is compared with: visible, one space between words, lower case; names stay as they are written."""
    return _one_space(_visible(text, []).lower())


def _visible(text: str, disguises: list[str]) -> str:
    if _PLAIN.match(text):
        return text
    composed = unicodedata.normalize("NFKC", text)
    kept = "".join(each for each in composed if not _is_unseen(each))
    if len(kept) != len(composed):
        disguises.append("invisible characters")
    bare = "".join(each for each in unicodedata.normalize("NFD", kept) if not unicodedata.combining(each))
    folded = bare.lower().translate(_FOLDED)
    if _mixes_scripts(bare.lower(), folded):
        disguises.append("letters that imitate others")
        return folded
    # The case still tells words apart where the letters were honest.
    return bare if folded == bare.lower() else folded


def _is_unseen(each: str) -> bool:
    return (each not in "\t\n\r" and unicodedata.category(each) in ("Cf", "Cc", "Co", "Cn")) or each in "ᅟᅠㅤ͏"


def _mixes_scripts(before: str, after: str) -> bool:
    """A word of Latin letters with look-alikes in it; a word of honest Cyrillic or Greek has none of both."""
    if len(before) != len(after):
        return before != after
    position = 0
    for word in re.split(r"(\W+)", before):
        turned = after[position : position + len(word)]
        position += len(word)
        if turned != word and turned.isascii() and any(each.isalpha() for each in turned):
            return True
    return False


def _one_space(text: str) -> str:
    return " ".join(text.split())


def _decoded(text: str, disguises: list[str]) -> list[str]:
    """Every text that some encoding of the hint, or of a word in it, holds; at most three layers deep."""
    found: list[str] = []
    layer = [text]
    for _ in range(_ROUNDS):
        layer = [inner for each in layer for inner in _one_layer(each, disguises)]
        if not layer:
            break
        found += [_one_space(_CAMEL.sub(" ", _visible(each, [])).lower()) for each in layer[:_MOST_READINGS]]
    return found


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
    return [each for each in [whole, *inside] if each != text]


def _unescaped(match: re.Match[str]) -> str:
    hexes, wide, octal = match.groups()
    return chr(int(octal, 8) if octal else int(hexes or wide, 16))


def _base64_words(text: str) -> list[str]:
    return [said for word in _BASE64.findall(text) if (said := _from_base64(word))]


def _from_base64(word: str) -> str:
    bare = word.rstrip("=").replace("-", "+").replace("_", "/")
    if bare.isalpha() and (bare.islower() or bare.isupper() or bare.istitle()):
        return ""
    try:
        return _text(base64.b64decode(bare + "=" * (-len(bare) % 4), validate=True))
    except (binascii.Error, ValueError):
        return ""


def _hex_words(text: str) -> list[str]:
    words = [re.sub(r"[ :]", "", found) for found in _HEX.findall(text)]
    return [said for word in words if (said := _text(bytes.fromhex(word)))]


def _text(raw: bytes) -> str:
    """These bytes as text, or "" if nobody would call them one."""
    for encoding in ("utf-8", "utf-16-le"):
        try:
            said = raw.decode(encoding)
        except UnicodeDecodeError:
            continue
        if len(said) >= 3 and _PLAIN.match(said) and sum(each.isalpha() for each in said) * 2 >= len(said):
            return said
    return ""


def _set_apart(text: str) -> list[str]:
    """Letters with one space between them, in words with more than one."""
    chunks = _WIDE.split(text.strip())
    if len(chunks) < 2 or not _SPACED.search(text):
        return []
    return [" ".join(_SPACED.sub(_joined, chunk) for chunk in chunks).lower()]


def _joined(match: re.Match[str]) -> str:
    return _BETWEEN.sub("", match[0])


def _closed_up(text: str, disguises: list[str]) -> list[str]:
    """The text without what was put between letters, and with figures read as the letters they stand for."""
    found = []
    closed = _SPACED.sub(_joined, text)
    if any(each in closed for each in _QUOTES):
        closed = _SPLIT_QUOTES.sub("", _COMMENTS.sub("", closed))
    if closed != text:
        disguises.append("letters set apart")
        found.append(closed)
    spelled = _LEET_WORD.sub(lambda match: match[0].translate(_LEET), closed)
    if spelled != closed:
        found.append(spelled)
    return found
