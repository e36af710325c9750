"""Does a word leave before the response gates have passed it?"""

from __future__ import annotations

import asyncio
import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.gates.providers import PROVIDERS
from apps.gates.schemas import GateSpec
from apps.gates.services import check_gates
from apps.sessions.streaming import GatedStream, settled

CARD_NUMBER = GateSpec(
    name="cards_out",
    on="every_agent_response",
    type="regex",
    config={"pattern": r"\A(?!.*\d{4} \d{4} \d{4} \d{4}).*\Z"},
    on_block="report",
)
NO_BEE = GateSpec(name="no_bee", on="every_agent_response", type="regex", config={"pattern": r"\A[^b]*\Z"})
REDACTS_BEE = GateSpec(name="redacts", on="every_agent_response", type="regex", config={"redact": "b"})
# So much behind something that it is shown, whatever the rhythm.
TAIL = "and so on " * 20
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
    assert await _streamed((), ["A burst ", "pipe is cov", "ered ", TAIL]) == f"A burst pipe is covered {TAIL}"


async def test_stream_shows_its_first_words_at_once() -> None:
    assert await _streamed((), ["A bu", "rst "]) == "A "


async def test_stream_keeps_an_unfinished_word_back() -> None:
    assert await _streamed((), ["A burst pi"]) == "A burst "


async def test_stream_with_a_script_gate_releases_nothing() -> None:
    assert await _streamed((SCRIPTED,), ["A burst pipe is covered ", TAIL]) == ""


async def test_stream_never_shows_the_beginning_of_a_forbidden_number() -> None:
    shown = await _streamed((CARD_NUMBER,), ["Your card is ", "4111 ", "1111 ", "1111 ", "1111 ", TAIL])
    assert shown == "Your card is "


async def test_stream_shows_nothing_that_a_gate_would_take_out() -> None:
    assert await _streamed((REDACTS_BEE,), ["You are ", f"a bee {TAIL}"]) == "You are "


async def test_stream_falls_silent_from_the_first_doubt_on() -> None:
    shown = await _streamed((CARD_NUMBER,), ["Card 4111 1111 1111 1111 then ", TAIL, TAIL])
    assert shown == ""


@given(
    st.text(alphabet="a b1.\n", max_size=600),
    st.integers(1, 90),
    st.sampled_from([(), (NO_BEE,), (REDACTS_BEE,), (CARD_NUMBER,)]),
)
def test_stream_releases_nothing_that_its_gates_would_not_pass(
    text: str, size: int, gates: tuple[GateSpec, ...]
) -> None:
    """What is shown at any moment is a settled beginning of what was said then, and passes as it stands."""
    said, shown = "", ""

    async def send(piece: str) -> None:
        nonlocal shown
        shown += piece
        assert settled(said) == shown
        report = check_gates(gates, "every_agent_response", {"response": shown})
        assert report.blocked is None
        assert report.context["response"] == shown

    async def stream() -> None:
        nonlocal said
        released = GatedStream(gates, send)
        for place in range(0, len(text), size):
            said += text[place : place + size]
            await released.piece(text[place : place + size])

    asyncio.run(stream())


@pytest.mark.parametrize("words", [1, 12, 60, 300, 2000])
async def test_stream_is_judged_over_no_more_than_nine_times_its_length(
    words: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked_at: list[int] = []
    judge = PROVIDERS["predicate"].evaluate
    monkeypatch.setattr(
        PROVIDERS["predicate"],
        "evaluate",
        lambda request: looked_at.append(len(request.context["response"])) or judge(request),
    )
    text = "a word or " * words
    shown = await _streamed((NO_BEE,), re.findall(r"\S+ ", text))
    assert sum(looked_at) <= 9 * len(text)
    assert len(text) - len(shown) <= max(70, len(text) / 8)


@pytest.mark.parametrize("piece", ["1 ", "-", "a b 1 "])
async def test_stream_of_a_hostile_model_takes_no_time(piece: str) -> None:
    """Of a text that never settles nothing is shown, and looking for more of it is no more work a word."""
    began = time.process_time()
    await _streamed((), [piece] * 20_000)
    assert time.process_time() - began < 2


@pytest.mark.parametrize("pieces", [["Take £", "250,", "000 ", TAIL], ["Call ", "+44 ", "20 ", TAIL]])
async def test_stream_in_the_end_releases_all_that_passes(pieces: list[str]) -> None:
    assert await _streamed((CARD_NUMBER,), pieces) == "".join(pieces)


@given(st.text(alphabet="ab 1-\n", max_size=14))
def test_settled_text_is_what_the_plain_definition_says(text: str) -> None:
    """The definition takes exponential time, so it is tried on short texts only."""
    definition = re.compile(r"(?:\S*[\d@:/_=+-]\S*\s*)+\Z|\S+\Z")
    assert settled(text) == definition.sub("", text)


@pytest.mark.parametrize("text", ["-" * 5000 + " a b", "1" * 5000 + "x y", "a:" * 3000 + " z", "1 " * 5000 + "a b"])
def test_settled_text_of_a_hostile_model_takes_no_time(text: str) -> None:
    began = time.thread_time()
    settled(text)
    assert time.thread_time() - began < 0.2
