"""Embed texts as wordllama vectors of 256 numbers, computed locally from the installed package (spec 6.2).

The model is loaded at first use (a third of a second, 40 MB) and shared by all threads; nothing is ever downloaded. A
text without a visible character gets None. Ingestion and search must use the same `MODEL`.
"""

from __future__ import annotations

import functools
import importlib.util
import logging
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

# Texts are lower-cased: the vectors of capitalised words are worse (`python -m evals.retrieval`).
MODEL = "wordllama:l2_supercat:256:lower"
DIMENSIONS = 256
# Enough for any question or piece; a visitor's essay beyond it says nothing new and costs time.
_CHARACTERS = 8000
_BATCH = 64

_loading = threading.Lock()

Vector = list[float]


def embed(text: str) -> Vector | None:
    """The unit vector of one text."""
    return embed_all([text])[0]


def embed_all(texts: Sequence[str]) -> list[Vector | None]:
    """Unit vectors of many texts, in order."""
    return [vector.tolist() if vector.any() else None for vector in embed_rows(texts)]


def embed_rows(texts: Sequence[str]) -> npt.NDArray[np.float32]:
    """Unit vectors of many texts as rows, in order; zeros for a text without a visible character."""
    import numpy as np

    if not texts:
        return np.zeros((0, DIMENSIONS), np.float32)
    raw = _model().embed([text[:_CHARACTERS].strip().lower() for text in texts], norm=False, batch_size=_BATCH)
    lengths = np.linalg.norm(raw, axis=1, keepdims=True)
    rows: npt.NDArray[np.float32] = raw / np.where(lengths > 0, lengths, 1)
    return rows


def _model() -> Any:
    with _loading:
        return _load()


@functools.cache
def _load() -> Any:
    package = importlib.util.find_spec("wordllama")
    if package is None or package.origin is None:
        raise RuntimeError("wordllama is not installed")
    handlers, level = list(logging.root.handlers), logging.root.level
    from wordllama import WordLlama

    # Importing wordllama configures the root logger (basicConfig); logging is ours to configure.
    logging.root.handlers[:] = handlers
    logging.root.setLevel(level)
    return WordLlama.load(dim=DIMENSIONS, cache_dir=Path(package.origin).parent, disable_download=True)
