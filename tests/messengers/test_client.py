"""Calls of providers: every way to fail says whether another attempt is worth it, and what left is not sent again."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from typing import Any

import pytest
from django.test import override_settings

from apps.messengers.client import Answer, call, send_in_order
from apps.messengers.enums import ChannelKind
from apps.messengers.ports import NotSent, Place
from tests.factories.messenger_providers import Asked, Provider, serving


class Odd(Provider):
    """Answers as the path says."""

    kind = ChannelKind.TELEGRAM

    def answer(self, asked: Asked) -> Any:
        match asked.path:
            case "/slow":
                time.sleep(1)
            case "/large":
                return 200, "text/plain", b"x" * 2000
            case "/moved":
                return 302, "text/plain", b""
        return 200, "application/json", b"[1]"


@pytest.fixture
def provider() -> Iterator[Provider]:
    with serving(Odd()) as served:
        served.headers = {"Location": "http://169.254.169.254/"}
        yield served


def ask(url: str, **named: Any) -> Answer:
    return asyncio.run(call("GET", url, **named))


@pytest.mark.parametrize(
    ("path", "named", "code", "retry_after"),
    [("/slow", {"seconds": 0.2}, "unreachable", 5), ("/large", {"max_bytes": 1000}, "answer_too_large", None)],
)
def test_slow_answer_is_waited_for_again_and_a_large_one_is_not(
    provider: Provider, path: str, named: dict[str, Any], code: str, retry_after: float | None
) -> None:
    with pytest.raises(NotSent) as refused:
        ask(provider.origin + path, **named)
    assert refused.value.code == code
    assert refused.value.retry_after == retry_after


def test_provider_that_is_down_is_tried_again(provider: Provider) -> None:
    with serving(Odd()) as gone:
        origin = gone.origin
    with pytest.raises(NotSent) as refused:
        ask(origin)
    assert refused.value.code == "unreachable"
    assert refused.value.retry_after == 5


@pytest.mark.parametrize("url", ["http://127.0.0.1/x", "http://169.254.169.254/latest/"])
def test_address_inside_is_not_called(database: None, url: str) -> None:
    with override_settings(CHANNELS_PRIVATE=False), pytest.raises(NotSent) as refused:
        ask(url)
    assert refused.value.code == "address_inside"
    assert refused.value.retry_after is None


def test_redirect_is_not_followed(provider: Provider) -> None:
    assert ask(f"{provider.origin}/moved").status == 302
    assert len(provider.asked) == 1


def test_answer_that_is_no_object_is_an_empty_one(provider: Provider) -> None:
    assert ask(provider.origin).json() == {}
    assert Answer(200, {}, b"<h1>").json() == {}
    assert Answer(200, {}, b"[" * 100_000).json() == {}


def test_parts_go_on_where_they_stopped_and_another_message_begins_anew() -> None:
    sent: list[str] = []
    refusals = [NotSent("busy", retry_after=1)]

    async def send(part: str) -> str:
        if part == "b" and refusals:
            raise refusals.pop()
        sent.append(part)
        return f"id-{part}"

    def attempt(once: str, reference: dict[str, Any]) -> Any:
        place = Place(settings={}, secrets={}, public_id="p", peer="x", key="x", reference=reference)
        return asyncio.run(send_in_order(place, once, ["a", "b"], send))

    with pytest.raises(NotSent) as refused:
        attempt("one", {})
    reference = dict(refused.value.reference)
    done = attempt("one", reference)
    assert done.external_id == "id-b"
    assert sent == ["a", "b"]
    attempt("two", reference)
    assert sent == ["a", "b", "a", "b"]
    assert done.reference == {"partly": None}
