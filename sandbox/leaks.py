"""Detect whether the output of a run contains one of its secrets, plain or in a usual encoding.

Searches for every text of four characters and more in the secret's JSON: as it is, reversed, in hexadecimal, in base64
at each of its three offsets, URL-encoded, JSON-escaped, and with other characters in between. This catches accidents
and lazy attempts; a script that encrypts a secret is stopped by the skill's review and its list of allowed places.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterable, Iterator
from urllib.parse import quote, quote_plus

_SHORTEST = 4
# Strewn with other characters, a short word is found in any text.
_SHORTEST_STREWN = 8
_NOISE = re.compile(rb"[^A-Za-z0-9]+")


def secret_values(secret: bytes) -> frozenset[str] | None:
    """The texts of a JSON object, or None if it is not one."""
    try:
        held = json.loads(secret)
    except (ValueError, RecursionError):
        return None
    return frozenset(_texts(held)) if isinstance(held, dict) else None


def is_leaked(values: Iterable[str], outputs: Iterable[bytes]) -> bool:
    """Whether one of the outputs contains one of the values."""
    forms = {form for value in values for form in _forms(value.encode("utf-8", "surrogatepass"))}
    strewn = {form for value in values for form in _interleaved(value.encode("utf-8", "surrogatepass"))}
    return any(_contains(output, forms, strewn) for output in outputs if output)


def _texts(held: object) -> Iterator[str]:
    if isinstance(held, str) and len(held) >= _SHORTEST:
        yield held
    elif isinstance(held, dict | list):
        for inner in held.values() if isinstance(held, dict) else held:
            yield from _texts(inner)


def _forms(value: bytes) -> Iterator[bytes]:
    text = value.decode("utf-8", "replace")
    yield from (value, value[::-1], value.hex().encode(), value.hex().upper().encode(), value.hex(" ").encode())
    yield from (quote(value, safe="").encode(), quote(value).encode(), quote_plus(value).encode())
    yield from (json.dumps(text)[1:-1].encode(), json.dumps(text, ensure_ascii=False)[1:-1].encode())
    for turned in (value, value[::-1]):
        yield from _base64(turned)


def _base64(value: bytes) -> Iterator[bytes]:
    """The invariant part of the base64 of any text that contains the value, for each of the three byte offsets."""
    for before in range(3):
        coded = base64.b64encode(b"\0" * before + value)
        kept = coded[(0, 2, 3)[before] : len(coded) - (0, 3, 2)[(before + len(value)) % 3]]
        if len(kept) >= _SHORTEST:
            yield from (kept, kept.replace(b"+", b"-").replace(b"/", b"_"))


def _interleaved(value: bytes) -> Iterator[bytes]:
    bare = _NOISE.sub(b"", value)
    if len(bare) >= _SHORTEST_STREWN:
        yield from (bare.lower(), bare[::-1].lower())


def _contains(output: bytes, forms: Iterable[bytes], strewn: Iterable[bytes]) -> bool:
    whole = b"".join(output.split())  # a long code is often broken into lines
    if any(form in output or form in whole for form in forms):
        return True
    # "s-e-c-r-e-t" is the secret as well.
    bare = _NOISE.sub(b"", output).lower()
    return any(form in bare for form in strewn)
