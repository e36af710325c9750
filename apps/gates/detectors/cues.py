"""Lists of cue words, read once from `tables/cues.txt`."""

from __future__ import annotations

from collections.abc import Mapping

from apps.gates.detectors.normalise import TABLES


def _read() -> Mapping[str, frozenset[str]]:
    found: dict[str, frozenset[str]] = {}
    for line in (TABLES / "cues.txt").read_text("utf-8").splitlines():
        name, colon, words = line.partition(":")
        if colon and not line.startswith("#"):
            found[name] = found.get(name, frozenset()) | frozenset(words.split())
    return found


CUES = _read()
