"""Call a provider's API over HTTP, and turn every way in which a call fails into `NotSent`.

Calls go to the addresses that adapters name, reach no address inside the own network and follow no redirect.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import httpx2
from django.conf import settings

from apps.messengers.enums import ChannelKind
from apps.messengers.ports import InboundFile, NotSent, Place, Sent
from kernel.http.client import open_client
from kernel.http.resolver import RequestRefused

# Larger files of a person are refused, although the provider would hand them out.
MOST_FILE_BYTES, FILE_SECONDS = 20_000_000, 60.0
# Until credentials that were refused have been renewed.
RENEWAL_SECONDS = 600.0
Part = TypeVar("Part")
# A provider's error codes: the problem, and the seconds until another attempt if one is worth it.
Errors = Mapping[int, tuple[str, float | None]]
_STEP_SECONDS, _SECONDS, _MOST_BYTES = 5.0, 15.0, 1_000_000
_LONGEST_WAIT = 3600.0


@dataclass(frozen=True)
class Answer:
    status: int
    headers: Mapping[str, str]
    content: bytes

    def json(self) -> dict[str, Any]:
        """The answer's object; empty for anything else."""
        try:
            found = json.loads(self.content)
        # A provider that is away may answer with a page of its proxy, or anything else.
        except (ValueError, RecursionError):
            return {}
        return found if isinstance(found, dict) else {}


def api_address(kind: ChannelKind, default: str) -> str:
    """Where the provider's interface is: what the operator set, or the provider's own."""
    return str(settings.CHANNEL_APIS.get(kind, default)).rstrip("/")


async def call(
    method: str,
    url: str,
    *,
    headers: Mapping[str, str] | None = None,
    body: Mapping[str, object] | None = None,
    form: Mapping[str, str] | None = None,
    files: Mapping[str, tuple[str, bytes, str]] | None = None,
    judged: Collection[int] = (),
    max_bytes: int = _MOST_BYTES,
    seconds: float = _SECONDS,
) -> Answer:
    """Send one request with a JSON `body`, or with a `form` and its `files`: name, content, media type. Raises
    `NotSent` for no answer, and for 429 and 5xx, which are worth another attempt; any other status, and those of
    `judged`, are the caller's to judge."""
    client = open_client(
        allow_private=settings.CHANNELS_PRIVATE, max_bytes=max_bytes, step_seconds=_STEP_SECONDS, accept_gzip=True
    )
    try:
        async with asyncio.timeout(seconds), client:
            answer = await client.request(method, url, headers=dict(headers or {}), json=body, data=form, files=files)
    except RequestRefused as refused:
        # A name that does not resolve may do so later; an address inside the own network will never be called.
        lasts = refused.is_permanent or refused.code == "answer_too_large"
        raise NotSent(refused.code, retry_after=None if lasts else 5) from None
    except (httpx2.HTTPError, httpx2.InvalidURL, OSError, ValueError) as error:
        raise NotSent("unreachable", retry_after=5) from error
    is_fault = answer.status_code == 429 or answer.status_code >= 500
    if is_fault and answer.status_code not in judged:
        raise NotSent(f"http_{answer.status_code}", retry_after=_seconds(answer.headers.get("retry-after", "")))
    return Answer(int(answer.status_code), dict(answer.headers), answer.content)


def problem_of(code: int, known: Errors) -> str:
    """A word for what a provider's error code means."""
    return known[code][0] if code in known else f"refused_{code}"


def refusal(answer: Answer, code: object, known: Errors) -> NotSent:
    """What an answer that refuses means: by its error code if it is known, otherwise by its status."""
    if isinstance(code, int) and code in known:
        problem, retry_after = known[code]
        return NotSent(problem, retry_after=retry_after, opted_out=problem == "opted_out")
    if answer.status == 401:
        return NotSent("unauthorized", retry_after=RENEWAL_SECONDS)
    if answer.status == 429 or answer.status >= 500:
        return NotSent(f"http_{answer.status}", retry_after=30)
    return NotSent(f"refused_{code}" if isinstance(code, int) else f"http_{answer.status}")


async def download(file: InboundFile, url: str, *, headers: Mapping[str, str] | None = None) -> InboundFile:
    """The file with its bytes; without them if it is too large or gone. Raises `NotSent` where another attempt may
    succeed."""
    try:
        answer = await call("GET", url, headers=headers, max_bytes=MOST_FILE_BYTES, seconds=FILE_SECONDS)
    except NotSent as refused:
        if refused.retry_after is not None:
            raise
        return InboundFile(file.name)
    return InboundFile(file.name, answer.content if answer.status == 200 else b"")


async def send_in_order(place: Place, once: str, parts: Sequence[Part], send: Callable[[Part], Awaitable[str]]) -> Sent:
    """Send the parts of one message; another attempt begins with the part that failed. Raises `NotSent`."""
    known, done = place.reference.get("partly") or ("", 0)
    external_id, begun = "", done if known == once else 0
    for number, part in enumerate(parts[begun:], begun):
        try:
            external_id = await send(part)
        except NotSent as refused:
            refused.reference = {**refused.reference, "partly": [once, number]}
            raise
    return Sent(external_id, {"partly": None} if known else {})


def _seconds(retry_after: str) -> float:
    # Bounded, because the provider's word would otherwise hold a conversation back for as long as it likes.
    return min(float(retry_after), _LONGEST_WAIT) if retry_after.strip().isdecimal() else 5.0
