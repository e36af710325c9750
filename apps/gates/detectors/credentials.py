"""Detect secrets in a text: known prefixes, PEM blocks, JWTs and random-looking values. Pure.

The redacted text has `[SECRET]` in their place, never a part of them.
"""

from __future__ import annotations

import base64
import binascii
import json
import math
import re
from collections import Counter
from collections.abc import Iterator

from apps.gates.detectors.findings import Detection, Span, build_detection

_KNOWN, _ASSIGNED, _PASSWORD, _ALONE = 0.98, 0.8, 0.6, 0.6
# Bits a character: words of a language have fewer than 3.2, keys in base64 more than 3.7.
_DRAWN_BY_LOT = 3.4
_DRAWN_HEX = 2.8

_PREFIXES = (
    r"(?:AKIA|ASIA|AGPA|AIDA|AROA|AIPA|ANPA|ANVA|A3T[A-Z0-9])[A-Z0-9]{16}",
    r"amzn\.mws\.[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}",
    r"RGAPI-[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}",
    r"gh[pousr]_[A-Za-z0-9]{30,255}+",
    r"github_pat_[A-Za-z0-9_]{22,255}+",
    r"gl(?:pat|dt|rt|ptt)-[A-Za-z0-9_-]{16,128}+",
    r"xox[abeoprs]-[A-Za-z0-9-]{10,250}+",
    r"xapp-[A-Za-z0-9-]{10,250}+",
    r"sk-(?:ant-|proj-|live-|or-v1-)?+[A-Za-z0-9_-]{20,250}+",
    r"[rsp]k_(?:live|test)_[A-Za-z0-9]{10,128}+",
    r"whsec_[A-Za-z0-9+/=]{16,128}+",
    r"AIza[A-Za-z0-9_-]{35}",
    r"ya29\.[A-Za-z0-9_-]{20,250}+",
    r"GOCSPX-[A-Za-z0-9_-]{20,64}+",
    r"SG\.[A-Za-z0-9_-]{16,32}+\.[A-Za-z0-9_-]{16,64}+",
    r"key-[0-9a-f]{32}",
    r"npm_[A-Za-z0-9]{36}",
    r"ATATT3[A-Za-z0-9_=-]{100,250}+",
    r"dapi[0-9a-f]{32}(?:-\d)?+",
    r"pat-(?:na|eu)\d-[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}",
    r"[0-9a-f]{32}-us\d{1,2}+",
    r"[0-9a-f]{32}-[0-9a-f]{8}-[0-9a-f]{8}",
    r"oy2[a-z0-9]{43}",
    r"pypi-[A-Za-z0-9_-]{50,250}+",
    r"hf_[A-Za-z0-9]{30,64}+",
    r"dop_v1_[0-9a-f]{64}",
    r"shp(?:at|ca|pa|ss)_[0-9a-fA-F]{32}",
    r"sq0(?:atp|csp)-[A-Za-z0-9_-]{22,64}+",
    r"EAACEdEose0cBA[A-Za-z0-9]{8,250}+",
    r"AGE-SECRET-KEY-1[A-Z0-9]{58}",
    r"hvs\.[A-Za-z0-9_-]{24,250}+",
    r"\d{8,10}+:AA[A-Za-z0-9_-]{33}",
)
_PREFIXED = re.compile(rf"(?<![A-Za-z0-9_-])(?:{'|'.join(_PREFIXES)})(?![A-Za-z0-9])")
# Anyone who knows the address may post there.
_WEBHOOK = re.compile(
    r"https://(?:hooks\.slack\.com/services|discord(?:app)?+\.com/api/webhooks|outlook\.office(?:365)?+\.com/webhook"
    r"|hooks\.zapier\.com/hooks/catch)/[A-Za-z0-9/@_-]{12,512}+"
)
# Something drawn by lot that stands by itself, in no address: `secret_Rqj3…`, `hawk.r1sI9….DSVE…`.
_RUN = re.compile(r"(?<![A-Za-z0-9_$:+/=.?&%@#-])[A-Za-z0-9][A-Za-z0-9_$:.-]{23,1024}+(?![/@A-Za-z0-9=+])")
_PIECES = re.compile(r"[/?&=#:.@,;~]")
_JOINT = re.compile(r"[_$:.-]")
_JWT = re.compile(r"(?<![A-Za-z0-9_-])(eyJ[A-Za-z0-9_-]{8,4096}+)\.[A-Za-z0-9_-]{2,8192}+\.[A-Za-z0-9_-]{0,2048}+")
_PEM_BEGIN = re.compile(r"-----BEGIN (?:(?:RSA|DSA|EC|OPENSSH|ENCRYPTED|PGP|ANY) )?+PRIVATE KEY(?: BLOCK)?+-----")
_PEM_END = re.compile(r"-----END [A-Z0-9 ]{3,40}+-----")
_LOGIN_URL = re.compile(r"(?<![\w+.-])[A-Za-z][A-Za-z0-9+.-]{1,20}+://[^\s:/@]{1,128}+:([^\s/@]{3,256}+)@")
_BEARER = re.compile(r"(?<!\w)(?:bearer|basic)\s{1,4}+([A-Za-z0-9._~+/=-]{16,4096}+)", re.IGNORECASE)
_NAMED = re.compile(
    r"(?<![A-Za-z0-9])((?:[A-Za-z0-9]{1,30}+[_ .-]?+){0,6}+)[\"'`]?+\s{0,4}+(?:=>|:=|=|:)\s{0,4}+[\"'`]?+"
    r"([^\s\"'`,;<>]{6,512}+)"
)
# The same right after another colon or sign, which `_NAMED` took for the name's: `here it is: password=…`.
_NAMED_LATER = re.compile(r"(?<=[:=>\s])([A-Za-z0-9_.-]{1,90}+)[\"'`]?+(?:=>|:=|=|:)[\"'`]?+([^\s\"'`,;<>]{6,512}+)")
_SAID = re.compile(
    r"(?<![A-Za-z])((?:secret|token|password|passphrase|pwd|key|credential)s?+) (?:is|was|are) "
    r"[\"'`]?+([^\s\"'`,;<>]{6,512}+)",
    re.IGNORECASE,
)
_SECRET_NAMES = re.compile(
    r"secret|token|passwd|password|passphrase|pwd|api[_ .-]?+key|access[_ .-]?+key|private[_ .-]?+key|auth[_ .-]?+key"
    r"|client[_ .-]?+key|credential|signing[_ .-]?+key|encryption[_ .-]?+key|account[_ .-]?+key",
    re.IGNORECASE,
)
_PASSWORD_NAMES = re.compile(r"passw|passphrase|pwd", re.IGNORECASE)
# Without one of these no value has a name that says it is secret; and no key by itself is shorter than this.
_NAMED_BY = ("secret", "token", "passw", "passphrase", "pwd", "key", "credent")
_KEY_CHARS = 15
_LONG = re.compile(r"(?<!\S)\S{15,}+")
_LONG_HEX = re.compile(r"[0-9a-fA-F]{32,128}+")


def detect_secrets(text: str) -> Detection:
    """The score is how sure we are that some secret stands in the text."""
    return build_detection(text, [*_known(text), *_assigned(text)])


def holds_secret(text: str) -> bool:
    """Whether some one thing in it is a secret beyond doubt. For files: many doubtful things (a list of hashes) make no
    sure one, as they do in the score."""
    return any(sure >= _ASSIGNED for _, sure in (*_known(text), *_assigned(text)))


def _known(text: str) -> Iterator[tuple[Span, float]]:
    if "-----BEGIN" in text:
        for begin in _PEM_BEGIN.finditer(text):
            yield Span(begin.start(), _pem_end(text, begin.end()), "SECRET"), _KNOWN
    if "://" in text:
        for match in _LOGIN_URL.finditer(text):
            yield Span(*match.span(1), "SECRET"), _KNOWN
    if max(map(len, text.split()), default=0) < _KEY_CHARS:
        return
    for match in _BEARER.finditer(text):
        if _is_drawn(match[1]):
            yield Span(*match.span(1), "SECRET"), _KNOWN
    for long in _LONG.finditer(text):
        yield from _within(text, *long.span())


def _within(text: str, start: int, end: int) -> Iterator[tuple[Span, float]]:
    """What stands in one long piece without blanks, which is where these stand."""
    for match in (*_PREFIXED.finditer(text, start, end), *_WEBHOOK.finditer(text, start, end)):
        yield Span(*match.span(), "SECRET"), _KNOWN
    for match in _RUN.finditer(text, start, end):
        if _holds_a_key(match[0]):
            yield Span(*match.span(), "SECRET"), _ALONE
    for match in _JWT.finditer(text, start, end):
        if _is_header(match[1]):
            yield Span(*match.span(), "SECRET"), _KNOWN


def _pem_end(text: str, start: int) -> int:
    """A block that never ends is secret to the last character, up to the longest key there is."""
    end = _PEM_END.search(text, start, start + 16_384)
    return end.end() if end else min(len(text), start + 16_384)


def _is_header(part: str) -> bool:
    try:
        header = json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))
    except (ValueError, binascii.Error, RecursionError):
        return False
    return isinstance(header, dict) and "alg" in header


def _assigned(text: str) -> Iterator[tuple[Span, float]]:
    """`api_key = …`, `"password": "…"`: a name of a secret, and a value that is no word of a language."""
    low = text.casefold()
    if not any(name in low for name in _NAMED_BY):
        return
    named = (match for match in _NAMED.finditer(text) if _SECRET_NAMES.search(match[1][-80:]))
    later = (match for match in _NAMED_LATER.finditer(text) if _SECRET_NAMES.search(match[1]))
    for match in (*named, *later, *_SAID.finditer(text)):
        name, value = match[1][-80:], match[2].rstrip(".)]}")
        span = Span(match.start(2), match.start(2) + len(value), "SECRET")
        if _is_drawn_somewhere(value):
            yield span, _ASSIGNED
        elif _PASSWORD_NAMES.search(name) and _is_password(value):
            yield span, _PASSWORD


def _is_drawn_somewhere(value: str) -> bool:
    """An address is made of words: only a piece of it can be drawn by lot."""
    if not value.lower().startswith(("http://", "https://")):
        return _is_drawn(value)
    return any(_is_drawn(piece) for piece in _PIECES.split(value))


def _holds_a_key(run: str) -> bool:
    """One part of it is long and drawn by lot. By itself it mixes capitals, small letters and figures, as no number of
    a parcel, an account or a commit does; after a prefix it need not."""
    parts = _JOINT.split(run)
    if len(parts) == 1:
        return _is_mixed(run) and _is_drawn(run)
    return any(len(part) >= 20 and _is_drawn(part) for part in parts[1:]) or any(
        len(part) >= 20 and _is_mixed(part) and _is_drawn(part) for part in parts
    )


def _is_mixed(part: str) -> bool:
    return not part.isupper() and not part.islower() and any(map(str.isdigit, part))


def _is_drawn(value: str) -> bool:
    if len(value) < 16:
        return False
    if _LONG_HEX.fullmatch(value):
        return _entropy(value) > _DRAWN_HEX
    return (
        any(char.isdigit() for char in value)
        and any(char.isalpha() for char in value)
        and _entropy(value) > _DRAWN_BY_LOT
    )


def _is_password(value: str) -> bool:
    """Letters with figures or signs among them; `incorrect`, `********` and `<your password>` are words about one."""
    kinds = (str.isalpha, str.isdigit, lambda char: not char.isalnum())
    return len(value) >= 6 and sum(any(map(kind, value)) for kind in kinds) > 1 and len(set(value)) > 4


def _entropy(value: str) -> float:
    return -sum(count / len(value) * math.log2(count / len(value)) for count in Counter(value).values())
