"""Vectors: made offline, from the installed package, without touching anybody's logging."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from llm import embedding

_ALONE = """
import sys

def forbid(event, arguments):
    if event in ("socket.connect", "socket.getaddrinfo", "socket.gethostbyname", "socket.sendto"):
        raise RuntimeError(event)

sys.addaudithook(forbid)
import logging
from llm import embedding
print(len(embedding.embed("burst pipe")), logging.root.handlers, logging.root.level)
"""


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> str:
    """What a fresh process prints that may not open a connection and has an empty home."""
    env = {"HOME": str(tmp_path_factory.mktemp("home")), "PYTHONPATH": str(Path(__file__).parents[2])}
    child = subprocess.run([sys.executable, "-c", _ALONE], env=env, capture_output=True, text=True, check=False)
    assert child.returncode == 0, child.stderr
    return child.stdout


def test_embed_without_network_and_cache_works(alone: str) -> None:
    assert alone.startswith("256 ")


def test_embed_leaves_logging_as_it_was(alone: str) -> None:
    assert alone.split(" ", 1)[1].strip() == "[] 30"


def test_embed_is_a_unit_vector() -> None:
    vector = embedding.embed("Does my policy cover a burst pipe?")
    assert vector is not None
    assert sum(number * number for number in vector) == pytest.approx(1, abs=1e-5)


@pytest.mark.parametrize("text", ["", "   ", "\n\t"])
def test_embed_nothing_has_no_direction(text: str) -> None:
    assert embedding.embed(text) is None


def test_embed_all_keeps_the_order_across_batches() -> None:
    texts = [f"word number {number}" for number in range(150)]
    assert embedding.embed_all(texts)[137] == pytest.approx(embedding.embed(texts[137]), abs=1e-6)


def test_embed_related_texts_are_nearer_than_unrelated_ones() -> None:
    question, related, other = embedding.embed_all(
        ["Is a burst pipe covered?", "We pay for water damage from leaking pipes.", "The museum opens at nine."]
    )
    assert _cosine(question, related) > _cosine(question, other)


def _cosine(one: list[float] | None, two: list[float] | None) -> float:
    assert one is not None
    assert two is not None
    return sum(a * b for a, b in zip(one, two, strict=True))
