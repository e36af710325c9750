"""Find words that mean nearly the same: by a list of related words, and by the vectors of single words.

"Tires" finds "tyres", "hurt" finds "injured", "sofa" finds "furniture". It is for words that the documents lack.
"""

from __future__ import annotations

import functools
from collections import defaultdict
from collections.abc import Mapping
from typing import TYPE_CHECKING

from llm.embedding import embed_rows
from llm.offline.vocabulary import RELATED
from llm.offline.words import stem

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

# Cosine similarity. Below it are words that only occur in the same places ("parking" and "parcel").
_ALIKE = 0.5
_LISTED = 0.7


def related(word: str, candidates: frozenset[str]) -> Mapping[str, float]:
    """The stems of those of `candidates` that mean nearly the same as `word`, and how nearly, 0 to 1.

    All are lower-case words as they are written. A word with a digit is related to none.
    """
    if not word.isalpha():
        return {}
    names, vectors = _vectors(candidates)
    likeness = dict.fromkeys(_related_stems().get(stem(word), frozenset()).intersection(map(stem, names)), _LISTED)
    for name, alike in zip(names, (vectors @ _vector(word)).tolist(), strict=True):
        if alike >= _ALIKE:
            likeness[stem(name)] = max(alike, likeness.get(stem(name), 0.0))
    return likeness


@functools.lru_cache(maxsize=4096)
def _vector(word: str) -> npt.NDArray[np.float32]:
    vector: npt.NDArray[np.float32] = embed_rows([word])[0]
    return vector


@functools.lru_cache(maxsize=32)
def _vectors(words: frozenset[str]) -> tuple[tuple[str, ...], npt.NDArray[np.float32]]:
    names = tuple(sorted(word for word in words if len(word) > 2 and word.isalpha()))
    return names, embed_rows(names)


@functools.cache
def _related_stems() -> Mapping[str, frozenset[str]]:
    """The stems of all words in the lines of `RELATED` that a stem is in."""
    lines: dict[str, frozenset[str]] = defaultdict(frozenset)
    for line in RELATED:
        forms = frozenset(map(stem, line.split()))
        for form in forms:
            lines[form] |= forms
    return dict(lines)
