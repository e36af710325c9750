"""Does a word leave before the response gates have passed it?"""

from __future__ import annotations

import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.gates.schemas import GateSpec
from apps.sessions.streaming import GatedStream, settled

CARD_NUMBER = GateSpec(
    name="cards_out",
    on="every_agent_response",
    type="regex",
    config={"pattern": r"\A(?!.*\d{4} \d{4} \d{4} \d{4}).*\Z"},
    on_block="report",
)
SCRIPTED = GateSpec(name="slow", on="every_agent_response", provider="script", type="custom_check")


async def _streamed(gates: tuple[GateSpec, ...], pieces: list[str]) -> str:
    sent: list[str] = []

    async def send(text: str) -> None:
        sent.append(text)

    stream = GatedStream(gates, send)
    for piece in pieces:
        await stream.piece(piece)
    return "".join(sent)


async def test_stream_without_gates_releases_whole_words() -> None:
    assert await _streamed((), ["A burst ", "pipe is cov", "ered "]) == "A burst pipe is covered "


async def test_stream_keeps_an_unfinished_word_back() -> None:
    assert await _streamed((), ["A burst pi"]) == "A burst "


async def test_stream_with_a_script_gate_releases_nothing() -> None:
    assert await _streamed((SCRIPTED,), ["A burst pipe is covered "]) == ""


async def test_stream_never_shows_the_beginning_of_a_forbidden_number() -> None:
    shown = await _streamed((CARD_NUMBER,), ["Your card is ", "4111 ", "1111 ", "1111 ", "1111 ", "as you said "])
    assert "4111" not in shown


async def test_stream_falls_silent_from_the_first_doubt_on() -> None:
    shown = await _streamed((CARD_NUMBER,), ["Card 4111 1111 1111 1111 then ", "more words "])
    assert "more" not in shown


@given(st.text(alphabet="ab 1.\n", max_size=60), st.integers(1, 7))
def test_stream_released_text_is_a_prefix_of_what_was_said(text: str, size: int) -> None:
    import asyncio

    pieces = [text[i : i + size] for i in range(0, len(text), size)]
    assert text.startswith(asyncio.run(_streamed((), pieces)))


@pytest.mark.parametrize("pieces", [["Take £", "250,", "000 ", "home "], ["Call ", "+44 ", "20 ", "now "]])
async def test_stream_in_the_end_releases_all_that_passes(pieces: list[str]) -> None:
    assert await _streamed((CARD_NUMBER,), pieces) == "".join(pieces)


@given(st.text(alphabet="ab 1-\n", max_size=14))
def test_settled_text_is_what_the_plain_definition_says(text: str) -> None:
    """The definition takes exponential time, so it is tried on short texts only."""
    definition = re.compile(r"(?:\S*[\d@:/_=+-]\S*\s*)+\Z|\S+\Z")
    assert settled(text) == definition.sub("", text)


@pytest.mark.parametrize("text", ["-" * 5000 + " a b", "1" * 5000 + "x y", "a:" * 3000 + " z", "1 " * 5000 + "a b"])
def test_settled_text_of_a_hostile_model_takes_no_time(text: str) -> None:
    began = time.perf_counter()
    settled(text)
    assert time.perf_counter() - began < 0.2
