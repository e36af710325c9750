"""Which questions are the same topic: measured on questions that visitors of a ferry company would ask."""

from __future__ import annotations

from itertools import combinations

import pytest

from apps.knowledge.gap_matching import Candidate, find_topic, moved_centroid
from llm import embedding

TOPICS = {
    "bikes": ("Can I take my bike on the train?", "Is it possible to take bikes with me on the train"),
    "cancel": ("How do I cancel my subscription?", "cancel subscription please how does that work"),
    "refund": ("When do I get my refund?", "How long does a refund take?"),
    "invoice": ("Where do I find my invoice?", "Where can I find the invoice please"),
}
OTHERS = (
    "Are dogs allowed in the cabins?",
    "Is there wifi on the ferry?",
    "Can I change the date of my booking?",
    "Is there parking at the harbour?",
    "How do I cancel my booking?",
)


def matches(text: str, *known: str) -> int | None:
    vectors = embedding.embed_all([text, *known])
    candidates = [Candidate(vector or [], question) for vector, question in zip(vectors[1:], known, strict=True)]
    return find_topic(text, vectors[0] or [], candidates)


@pytest.mark.parametrize("name", TOPICS)
def test_another_wording_is_the_same_topic(name: str) -> None:
    first, second = TOPICS[name]
    assert matches(second, *OTHERS, first) == len(OTHERS)


@pytest.mark.parametrize(("one", "other"), list(combinations([*OTHERS, *(first for first, _ in TOPICS.values())], 2)))
def test_different_questions_are_different_topics(one: str, other: str) -> None:
    assert matches(one, other) is None


def test_near_vectors_without_a_shared_word_are_different_topics() -> None:
    vector = embedding.embed("How do I cancel my subscription?") or []
    assert find_topic("Where is the harbour?", vector, [Candidate(vector, "How do I cancel?")]) is None


def test_first_of_two_equal_topics_is_taken() -> None:
    first = TOPICS["bikes"][0]
    assert matches(first, first, first) == 0


def test_centroid_weighs_every_visitor_the_same() -> None:
    assert moved_centroid([1.0, 0.0], 1, [0.0, 1.0]) == pytest.approx([0.5**0.5, 0.5**0.5])
    assert moved_centroid([1.0, 0.0], 3, [0.0, 1.0])[0] > 0.9
