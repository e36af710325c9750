"""A provider errors, stalls and lies in a live conversation: the built-in model answers, and the audit says so."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Any

import pytest

from tests.fakes.openai_server import FakeOpenAI, Replies, Reply, direct, final
from tests.faults.house import House, Web
from tests.faults.visitor import Visitor

LONG = "Everything is covered, always, and we pay at once, whatever it was and whoever did it. " * 4
GARBAGE = ("this is not json", "{{{", "[DONE")
FAILURES = {
    "http 500": (Reply(status=500), "http_500"),
    "http 429": (Reply(status=429), "http_429"),
    "http 401": (Reply(status=401), "http_401"),
    "silence": (direct(LONG, stall_after=0), "first_token_timeout"),
    "a stall in the middle": (direct(LONG, stall_after=12), "stalled"),
    "a line that breaks": (direct(LONG, cut_after=12), "connection_lost"),
    "garbage": (Reply(raw=GARBAGE), "provider_error"),
    "an answer of a wrong shape": (final('{"route": "nowhere"}'), "proxy_structured_output_invalid"),
}


@dataclass
class Talk:
    text: str
    shown: str
    reasons: list[str]
    turns: list[str]


@pytest.fixture(scope="module")
def talks(house: House, web: Web, model: Callable[[Replies], FakeOpenAI]) -> dict[str, Talk]:
    model(_fail)
    return asyncio.run(_talks(house, web))


def _fail(request: dict[str, Any]) -> Reply:
    said = json.dumps(request)
    return next(reply for name, (reply, _) in FAILURES.items() if f"[{name}]" in said)


async def _talks(house: House, web: Web) -> dict[str, Talk]:
    async with AsyncExitStack() as leaving:
        visitors = {name: await leaving.enter_async_context(Visitor(lambda: web)) for name in FAILURES}
        answers = await asyncio.gather(
            *(visitor.ask(f"[{name}] Does my home policy cover a burst pipe?") for name, visitor in visitors.items())
        )
        return {
            name: Talk(answer["text"], _shown(visitor), _reasons(house, visitor), _turns(house, visitor))
            for (name, visitor), answer in zip(visitors.items(), answers, strict=True)
        }


def _shown(visitor: Visitor) -> str:
    return "".join(frame["text"] for frame in visitor.heard if frame["type"] == "delta")


def _reasons(house: House, visitor: Visitor) -> list[str]:
    rows = house.rows(
        "SELECT data FROM audit_auditentry WHERE event = 'model_fell_back' AND subject = %s",
        f"session:{visitor.session_id}",
    )
    return [json.loads(row["data"])["reason"] for row in rows]


def _turns(house: House, visitor: Visitor) -> list[str]:
    rows = house.rows("SELECT status, model_name FROM silas_sessions_turn WHERE session_id = %s", visitor.session_id)
    return [f"{row['status']} {row['model_name']}" for row in rows]


@pytest.mark.parametrize("name", [name for name, (_, reason) in FAILURES.items() if "shape" not in name])
def test_failed_provider_is_answered_for_by_the_built_in_model(talks: dict[str, Talk], name: str) -> None:
    assert "burst pipe" in talks[name].text
    assert "50,000" in talks[name].text
    assert talks[name].turns == ["done builtin:grounded"]


@pytest.mark.parametrize("name", FAILURES)
def test_audit_log_says_that_the_model_fell_back_and_why(talks: dict[str, Talk], name: str) -> None:
    assert talks[name].reasons == [FAILURES[name][1]]


def test_answer_of_a_wrong_shape_becomes_an_apology(talks: dict[str, Talk]) -> None:
    assert "could not put my answer into words" in talks["an answer of a wrong shape"].text


@pytest.mark.parametrize("name", FAILURES)
def test_visitor_sees_one_beginning_of_one_answer_stream(talks: dict[str, Talk], name: str) -> None:
    shown = talks[name].shown.rstrip()
    assert talks[name].text.startswith(shown) or LONG.startswith(shown)
