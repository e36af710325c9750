"""Embed texts by a provider's model: unit vectors of one dimension, with the model tokens that were used.

The built-in embedding is `llm.embedding` (spec 6.2). Vectors are comparable only with those of the same `version`.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from llm.failures import ProviderFailed, ShapeBroken, translate_errors
from llm.models import open_embedding_model
from llm.pricing import estimate_tokens
from llm.runs import Usage

# Dimensions that the database has an index for.
DIMENSIONS = (384, 512, 768, 1024, 1536, 3072)
# Providers refuse texts beyond some 8,000 tokens; a passage is far shorter.
_CHARACTERS = 8000
_STUMBLES = (AttributeError, LookupError, TypeError, ValueError, ShapeBroken)

Vector = list[float]


@dataclass(frozen=True)
class Embedded:
    """`vectors` in the order of the texts."""

    vectors: tuple[Vector, ...]
    usage: Usage


def version(model: str, dimensions: int) -> str:
    """The name of the vectors that this model makes."""
    return f"{model}:{dimensions}"


def estimate_usage(texts: Sequence[str]) -> Usage:
    """The most model tokens that embedding these texts may use."""
    return Usage(input_tokens=sum(_tokens(text[:_CHARACTERS]) for text in texts))


async def embed(
    model: str, texts: Sequence[str], *, key: str | None, purpose: Literal["query", "document"], seconds: float
) -> Embedded:
    """Embed the texts in one request. Raises `ProviderFailed`, also for an answer that has not one finite vector of
    the same length for each text."""
    # Providers refuse an empty text, and with it the whole request.
    sent = [text[:_CHARACTERS].strip() or " " for text in texts]
    try:
        async with asyncio.timeout(seconds), open_embedding_model(model, key=key) as opened:
            with translate_errors():
                result = await opened.embed(sent, input_type=purpose)
        vectors = tuple(_unit(vector) for vector in result.embeddings)
    except TimeoutError:
        raise ProviderFailed("request_timeout") from None
    except _STUMBLES as error:
        raise ProviderFailed("unreadable_response") from error
    # One vector too few would give each later text its neighbour's.
    if len(vectors) != len(sent) or len({len(vector) for vector in vectors}) != 1:
        raise ProviderFailed("unreadable_response")
    # Some providers report no usage, and their calls are not free.
    counted = result.usage.input_tokens or sum(map(_tokens, sent))
    return Embedded(vectors, Usage(counted, 0, 1, unmeasured=int(not result.usage.input_tokens)))


def _tokens(text: str) -> int:
    return max(estimate_tokens(len(text.encode())), 1)


def _unit(vector: Sequence[float]) -> Vector:
    """Raises `ValueError` for a vector without a direction."""
    length = math.sqrt(sum(value * value for value in vector))
    if not math.isfinite(length) or not length:
        raise ValueError("a vector without a direction")
    return [value / length for value in vector]
