"""Decide which topic a question belongs to, from vectors and words. Pure and deterministic: no model is asked.

A wrong match hides a gap in another one, while a missed match costs a member one press on Merge. So two questions match
only if they share a word that carries meaning and are very near, or share half of such words and are near.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from llm.embedding import Vector
from llm.offline.words import content

# Cosine similarity. Measured with the embedding model's vectors in tests/knowledge/test_gap_matching.py.
_VERY_NEAR, _NEAR = 0.72, 0.5
_SHARED_SHARE = 0.5


@dataclass(frozen=True)
class Candidate:
    """A topic that a question may belong to: its unit centroid, and the question that stands for it."""

    centroid: Vector
    question: str


def find_topic(text: str, vector: Vector, candidates: Sequence[Candidate]) -> int | None:
    """The index of the topic that `text` belongs to, the most similar and then the first one; None for a new topic."""
    if not candidates:
        return None
    similar = similarities(vector, [candidate.centroid for candidate in candidates])
    words = set(content(text))
    for index in sorted(range(len(candidates)), key=lambda index: -similar[index]):
        if similar[index] < _NEAR:
            return None
        others = set(content(candidates[index].question))
        shared, together = len(words & others), len(words | others)
        if shared and (similar[index] >= _VERY_NEAR or shared / together >= _SHARED_SHARE):
            return index
    return None


def similarities(vector: Vector, centroids: Sequence[Vector]) -> list[float]:
    """Cosine similarities of unit vectors."""
    import numpy as np

    return [float(value) for value in np.asarray(centroids) @ np.asarray(vector)]


def moved_centroid(centroid: Vector, visitors: int, vector: Vector) -> Vector:
    """The unit mean of `visitors` vectors whose mean is `centroid`, and one more."""
    import numpy as np

    total = np.asarray(centroid) * visitors + np.asarray(vector)
    length = float(np.linalg.norm(total))
    return [float(value) for value in total / length] if length else centroid
