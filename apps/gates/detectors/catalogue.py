"""The detectors by name, their settings and thresholds. `detect` runs one, `detects` says whether it objects.

Names and settings are those of `check` and `config` of a gate (spec 5.5.1, contract silas 16). Unknown settings are
refused, never ignored: a gate with a typo must not look as if it worked."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from apps.gates.detectors.credentials import detect_secrets
from apps.gates.detectors.findings import Detection, any_of, without_overlap
from apps.gates.detectors.markup import detect_markup
from apps.gates.detectors.normalise import Spellings
from apps.gates.detectors.phrases import detect_phrases, read_table
from apps.gates.detectors.pii import KINDS, detect_pii
from apps.gates.detectors.roles import detect_roles

TOPICS = ("medical", "legal", "investment", "politics")
# The score from which on a gate objects unless its `threshold` says otherwise; measured in docs/detection-figures.md.
THRESHOLDS: Mapping[str, float] = {
    "pii": 0.5,
    "secrets": 0.5,
    "markup": 0.5,
    "jailbreak": 0.6,
    "injection": 0.5,
    "toxicity": 0.5,
    "topic": 0.5,
}
# What the runner or the provider reads, whichever detector it is.
_SHARED = frozenset({"threshold", "on_fail", "tools"})
# Other names that configurations use for the same kinds.
_ALIASES = {
    "EMAIL_ADDRESS": "EMAIL",
    "PHONE_NUMBER": "PHONE",
    "US_SSN": "SSN",
    "IBAN_CODE": "IBAN",
    "NAME": "PERSON",
    "IP": "IP_ADDRESS",
}


class InvalidSetting(ValueError):
    """A detector or a setting that does not exist."""


def detect(name: str, text: str, config: Mapping[str, object], spellings: Spellings | None = None) -> Detection:
    """Run one detector; `spellings` are shared by the detectors of a run.

    Raises `InvalidSetting` for an unknown detector or setting.
    """
    run = _DETECTORS.get(name)
    if run is None:
        raise InvalidSetting(f"unknown detector: {name}")
    return run(text, config, spellings)


def detects(name: str, text: str) -> bool:
    """Whether a detector with its own settings and threshold objects to the text. Raises `InvalidSetting`."""
    return detect(name, text, {}).score >= threshold(name, {})


def threshold(name: str, config: Mapping[str, object]) -> float:
    """A number in (0, 1]: 0 would object to every text. Raises `InvalidSetting`."""
    value = config.get("threshold", THRESHOLDS.get(name))
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value) or not 0 < value <= 1:
        raise InvalidSetting("threshold must be a number above 0 and up to 1")
    return float(value)


def is_fixing(config: Mapping[str, object]) -> bool:
    """`on_fail: fix` takes out what was found, `exception` refuses the text (spec 5.5.1). Raises `InvalidSetting`."""
    wanted = config.get("on_fail", "exception")
    if wanted not in ("fix", "exception"):
        raise InvalidSetting("on_fail must be fix or exception")
    return bool(wanted == "fix")


def _pii(text: str, config: Mapping[str, object], _spellings: Spellings | None) -> Detection:
    _only(config, "entities")
    kinds = [_ALIASES.get(kind, kind) for kind in _words(config, "entities")] or list(KINDS)
    if not set(kinds) <= set(KINDS):
        raise InvalidSetting("unknown entity")
    return detect_pii(text, kinds=kinds)


def _secrets(text: str, config: Mapping[str, object], _spellings: Spellings | None) -> Detection:
    _only(config)
    return detect_secrets(text)


def _markup(text: str, config: Mapping[str, object], _spellings: Spellings | None) -> Detection:
    _only(config, "allowed_hosts")
    return detect_markup(text, allowed_hosts=_words(config, "allowed_hosts"))


def _jailbreak(text: str, config: Mapping[str, object], spellings: Spellings | None) -> Detection:
    _only(config)
    phrases = detect_phrases(text, read_table("jailbreak", "frames"), spellings)
    return _together(phrases, detect_roles(text, sure=0.4))


def _injection(text: str, config: Mapping[str, object], spellings: Spellings | None) -> Detection:
    """Content addresses no assistant, so that less is enough than in what visitors write."""
    _only(config)
    phrases = detect_phrases(text, read_table("jailbreak", "frames", "content_frames"), spellings)
    return _together(phrases, detect_roles(text, sure=0.55))


def _together(*found: Detection) -> Detection:
    spans = without_overlap(span for each in found for span in each.spans)
    return Detection(any_of(each.score for each in found), spans)


def _toxicity(text: str, config: Mapping[str, object], spellings: Spellings | None) -> Detection:
    _only(config)
    return detect_phrases(text, read_table("toxicity"), spellings)


def _topic(text: str, config: Mapping[str, object], spellings: Spellings | None) -> Detection:
    _only(config, "topics")
    names = _words(config, "topics")
    if not names or not set(names) <= set(TOPICS):
        raise InvalidSetting(f"topics must be some of {', '.join(TOPICS)}")
    tables = (f"topic_{name}" for name in sorted(set(names)))
    return detect_phrases(text, read_table(*tables), spellings)


_DETECTORS: Mapping[str, Callable[[str, Mapping[str, object], Spellings | None], Detection]] = {
    "pii": _pii,
    "secrets": _secrets,
    "markup": _markup,
    "jailbreak": _jailbreak,
    "injection": _injection,
    "toxicity": _toxicity,
    "topic": _topic,
}


def _only(config: Mapping[str, object], *known: str) -> None:
    strange = set(config) - set(known) - _SHARED
    if strange:
        raise InvalidSetting(f"unknown setting: {', '.join(sorted(map(str, strange)))}")


def _words(config: Mapping[str, object], name: str) -> list[str]:
    value = config.get(name) or []
    if not isinstance(value, list | tuple) or not all(isinstance(word, str) for word in value):
        raise InvalidSetting(f"{name} must be a list of words")
    return list(value)
